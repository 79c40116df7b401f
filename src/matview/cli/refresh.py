"""`matview refresh`: brings materialized views up to date, several as one maintenance transaction."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from matview.cli.durations import shown
from matview.cli.opened import open_here
from matview.cli.report import UsageError
from matview.cli.rows import write_table
from matview.cli.texts import announce, write_json
from matview.cli.where import HERE, Where
from matview.reading.views import refreshes_at
from matview.warehouse import Warehouse

COLUMNS = ("view", "strategy", "rows changed", "took", "version")
NOTHING = "up to date"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """`strategy` has one word for each way in which the view and its hidden parts were refreshed."""

    view: str
    strategy: str
    rows: int
    seconds: float
    version: int


def refresh(
    *views: Annotated[str, Parameter(name="VIEW", help="The views to refresh; those that they read come first.")],
    all: Annotated[bool, Parameter(negative="", help="Every view of the warehouse.")] = False,
    full: Annotated[bool, Parameter(negative="", help="Compute them anew, whatever would be cheaper.")] = False,
    json: Annotated[bool, Parameter(negative="", help="For programs.")] = False,
    where: Where = HERE,
) -> None:
    if bool(views) == all:
        raise UsageError("which views?", help="name some, or give --all")
    with open_here(where) as warehouse:
        names = [view.name for view in warehouse.views()] if all else list(dict.fromkeys(views))
        done = _refreshed(warehouse, names, full) if names else []
    if json:
        write_json(done)
    else:
        write_table(COLUMNS, [(r.view, r.strategy, r.rows, shown(r.seconds), r.version) for r in done])


def _refreshed(warehouse: Warehouse, names: list[str], full: bool) -> list[Refreshed]:
    """All of them at one version, or none."""
    seconds = []
    with warehouse.transaction() as tx:
        for place, name in enumerate(names, 1):
            announce(f"refreshing {name} ({place} of {len(names)}) …")
            began = time.perf_counter()
            tx.refresh(name, full=full)
            seconds.append(time.perf_counter() - began)
        announce("committing …")
        version = tx.commit().version
    current = warehouse.catalog.version().current_vn if version is None else version
    return [_told(warehouse, name, took, version, current) for name, took in zip(names, seconds, strict=True)]


def _told(warehouse: Warehouse, view: str, took: float, version: int | None, current: int) -> Refreshed:
    records = () if version is None else refreshes_at(warehouse.catalog, view, version)
    ways = ", ".join(dict.fromkeys(record.strategy for record in records))
    rows = sum(record.rows for record in records if record.view.casefold() == view.casefold())
    return Refreshed(view, ways or NOTHING, rows, took, current)
