"""`matview refresh`: brings viewgroups and views up to date, several as one maintenance transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from matview.catalog.records import RefreshRecord
from matview.cli.durations import shown
from matview.cli.opened import open_here
from matview.cli.report import UsageError
from matview.cli.rows import write_table
from matview.cli.texts import announce, write_json
from matview.cli.where import HERE, Where
from matview.groups.graph import Maintain
from matview.maintain.views.refresh import Mode
from matview.reading.views import refreshes_at
from matview.warehouse import Warehouse

COLUMNS = ("view", "strategy", "rows changed", "took", "version")
NOTHING = "up to date"
SNAPSHOT = Maintain.SNAPSHOT.value


@dataclass(frozen=True, slots=True)
class Refreshed:
    """`strategy` has one word for each way in which the view and its hidden parts were refreshed.

    `seconds` are what its own steps took; those of several views run side by side.
    """

    view: str
    strategy: str
    rows: int
    seconds: float
    version: int


def refresh(
    *names: Annotated[str, Parameter(name="NAME", help="Viewgroups and views; a snapshot view brings its group.")],
    all: Annotated[bool, Parameter(negative="", help="Every view of the warehouse.")] = False,
    full: Annotated[bool, Parameter(negative="", help="Compute them anew, whatever would be cheaper.")] = False,
    json: Annotated[bool, Parameter(negative="", help="For programs.")] = False,
    where: Where = HERE,
) -> None:
    if bool(names) == all:
        raise UsageError("which views?", help="name viewgroups or views, or give --all")
    with open_here(where) as warehouse:
        chosen = [view.name for view in warehouse.views()] if all else list(dict.fromkeys(names))
        done = _refreshed(warehouse, chosen, "full" if full else "auto") if chosen else []
    if json:
        write_json(done)
    else:
        write_table(COLUMNS, [(r.view, r.strategy, r.rows, _took(r), r.version) for r in done])


def _took(refreshed: Refreshed) -> str:
    return shown(refreshed.seconds) if refreshed.seconds else ""


def _refreshed(warehouse: Warehouse, names: list[str], mode: Mode) -> list[Refreshed]:
    """All of them at one version, or none."""
    with warehouse.transaction() as tx:
        announce(f"refreshing {', '.join(names)} …")
        tx.refresh(*names, mode=mode)
        announce("committing …")
        version = tx.commit().version
    views = _views(warehouse, names)
    if version is None:
        current = warehouse.catalog.version().current_vn
        return [Refreshed(name, NOTHING, 0, 0.0, current) for name in views]
    return [_told(name, refreshes_at(warehouse.catalog, name, version), version) for name in views]


def _views(warehouse: Warehouse, names: list[str]) -> list[str]:
    """What was refreshed: the snapshot views of groups that were named, and of the groups of views that were."""
    views = warehouse.views()
    groups = {group.name.casefold() for group in warehouse.viewgroups()}
    found: dict[str, None] = {}
    for name in names:
        own = [view for view in views if view.name.casefold() == name.casefold()]
        of_group = name if name.casefold() in groups else next((v.group for v in own if v.maintain == SNAPSHOT), None)
        inside = [v for v in views if of_group and v.group.casefold() == of_group.casefold() and v.maintain == SNAPSHOT]
        found |= dict.fromkeys(view.name for view in inside or own)
    return list(found)


def _told(view: str, records: Sequence[RefreshRecord], version: int) -> Refreshed:
    ways = ", ".join(dict.fromkeys(record.strategy for record in records))
    rows = sum(record.rows for record in records if record.view.casefold() == view.casefold())
    return Refreshed(view, ways or NOTHING, rows, sum(record.seconds for record in records), version)
