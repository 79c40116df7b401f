"""`matview audit`: every view against its query computed anew, over the state that it shows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from pyspark.sql import DataFrame
from sqlglot import exp

from matview.cli.durations import shown
from matview.cli.opened import open_here
from matview.cli.rows import write_table
from matview.cli.texts import announce, say, write_json
from matview.cli.where import HERE, Where
from matview.reading.views import ViewStatus
from matview.spark.errors import translated
from matview.sql.statements import Query
from matview.warehouse import Warehouse

COLUMNS = ("view", "rows", "differing", "behind", "took")


@dataclass(frozen=True, slots=True)
class Audited:
    """`differing` rows the view lacks or has too many; it is `behind` so many versions that changed what it reads."""

    view: str
    rows: int
    differing: int
    behind: int
    seconds: float


def audit(*, json: Annotated[bool, Parameter(negative="", help="For programs.")] = False, where: Where = HERE) -> int:
    with open_here(where) as warehouse:
        found = [_audited(warehouse, view) for view in warehouse.views()]
    if json:
        write_json(found)
    elif found:
        write_table(COLUMNS, [(a.view, a.rows, a.differing, a.behind, shown(a.seconds)) for a in found])
    else:
        say("there are no views")
    return 1 if any(a.differing for a in found) else 0


def _audited(warehouse: Warehouse, view: ViewStatus) -> Audited:
    announce(f"computing {view.name} anew …")
    began = time.perf_counter()
    with translated():
        differing = warehouse.diff(view.name).count()
        rows = _count(warehouse, view.name)
    return Audited(view.name, rows, differing, view.behind, time.perf_counter() - began)


def _count(warehouse: Warehouse, name: str) -> int:
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    frame = warehouse.run(Query(exp.select("1").from_(table)))
    assert isinstance(frame, DataFrame)
    return frame.count()
