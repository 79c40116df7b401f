"""`matview diff`: a view against its query computed anew."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from matview.cli.opened import open_here
from matview.cli.rows import Format, Row, write_rows
from matview.cli.texts import note, say
from matview.cli.where import HERE, Where
from matview.spark.errors import translated
from matview.warehouse import Warehouse

SHOWN = 20


def diff(
    view: Annotated[str, Parameter(name="VIEW", help="The view to look at.")],
    /,
    *,
    limit: Annotated[NonNegativeInt, Parameter(help="At most so many rows; 0: all.")] = SHOWN,
    newest: Annotated[
        bool, Parameter(negative="", help="Over the newest state of its tables: what a refresh would change.")
    ] = False,
    format: Annotated[Format, Parameter(help="How rows are written.")] = "table",
    where: Where = HERE,
) -> int:
    with open_here(where) as warehouse:
        with translated():
            frame = warehouse.diff(view, "newest" if newest else "effective")
            rows = frame.limit(limit + 1).collect() if limit else frame.collect()
        if rows:
            write_rows(("weight", *frame.columns[:-1]), [_signed(row) for row in rows[: limit or None]], format)
        else:
            say(f"{view} equals its query")
        _remark(warehouse, view, len(rows) > limit > 0)
    return 1 if rows else 0


def _signed(row: Row) -> Row:
    """`+1` for a row that the view lacks, `-1` for one that it has too many."""
    return (f"{row[-1]:+d}", *row[:-1])


def _remark(warehouse: Warehouse, view: str, cut: bool) -> None:
    if cut:
        note("more rows differ; --limit says how many are shown, --limit 0 all")
    behind = next((v.behind for v in warehouse.views() if v.name.casefold() == view.casefold()), 0)
    if behind:
        since = "once" if behind == 1 else f"{behind} times"
        note(f"what {view} reads has changed {since} since it was refreshed: `matview refresh {view}`")
