"""Changes computed on the driver, over rows that DuckDB holds: tables that are read whole, or only looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from tests.local.rows import rows_of, values_of

from matview.algebra.nodes import WEIGHT, Change, Node, Scan, Stored
from matview.local.kinds import BIGINT, UNKNOWN, Kind, NotLocal, kind_of
from matview.local.relations import Rows, Wanted, evaluated
from matview.sql.render import Name


@dataclass(frozen=True)
class OfDuck:
    """The tables under the names that `name` gives; if they are `large`, none of them is read whole."""

    connection: duckdb.DuckDBPyConnection
    name: Name
    large: bool

    def change(self, leaf: Change) -> Rows:
        return self._rows(leaf, f'"Δ{leaf.scan.table}"', leaf.scan, extra=((WEIGHT, BIGINT),))

    def scan(self, leaf: Scan, wanted: Wanted | None) -> Rows:
        if wanted is None and self.large:
            raise NotLocal("a table read whole")
        found = self._rows(leaf, self.name(leaf).sql("duckdb"), leaf)
        if wanted is None:
            return found
        column = found.column(wanted.name)
        near = pc.is_in(column, wanted.among(column.type))
        extra = pa.array([at == 0 for at in range(found.size)], pa.bool_())
        return found.taken(pc.indices_nonzero(pc.or_(near, extra)))

    def stored(self, leaf: Stored, wanted: Wanted | None) -> Rows:
        columns = ", ".join(f'"{name}"' for name in leaf.names)
        rows = self.connection.execute(f'SELECT {columns} FROM "{leaf.view}"').fetchall()
        return rows_of(leaf.names, [kind_of(f.type) for f in leaf.fields], rows)

    def _rows(self, leaf: Node, table: str, scan: Scan, extra: tuple[tuple[str, Kind], ...] = ()) -> Rows:
        columns = ", ".join(f'"{name}"' for name in (*scan.columns, *(name for name, _ in extra)))
        kinds = (*(kind_of(f.type) for f in scan.fields), *(kind for _, kind in extra))
        rows = self.connection.execute(f"SELECT {columns or 'NULL'} FROM {table}").fetchall()
        return rows_of(leaf.names, kinds, rows)


def rows_at_hand(connection: duckdb.DuckDBPyConnection, name: Name, node: Node, *, large: bool) -> list[Any] | None:
    """The rows of a node, as DuckDB would show them; None where it is for Spark to compute."""
    try:
        found = evaluated(node, OfDuck(connection, name, large))
    except NotLocal:
        return None
    if UNKNOWN in found.kinds:
        return None  # nothing that is stored has no type
    return values_of(found)
