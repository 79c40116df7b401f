"""Changes computed in Python, over rows that DuckDB holds: tables that are read whole, or only looked up."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb

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
        place = found.names.index(wanted.name)
        near = [row for at, row in enumerate(found.rows) if row[place] in wanted.values or at == 0]
        return Rows(found.names, found.kinds, near)

    def stored(self, leaf: Stored, wanted: Wanted | None) -> Rows:
        columns = ", ".join(f'"{name}"' for name in leaf.names)
        rows = self.connection.execute(f'SELECT {columns} FROM "{leaf.view}"').fetchall()
        return Rows(leaf.names, tuple(kind_of(f.type) for f in leaf.fields), [tuple(map(_physical, r)) for r in rows])

    def _rows(self, leaf: Node, table: str, scan: Scan, extra: tuple[tuple[str, Kind], ...] = ()) -> Rows:
        columns = ", ".join(f'"{name}"' for name in (*scan.columns, *(name for name, _ in extra)))
        kinds = (*(kind_of(f.type) for f in scan.fields), *(kind for _, kind in extra))
        rows = self.connection.execute(f"SELECT {columns or 'NULL'} FROM {table}").fetchall()
        return Rows(leaf.names, kinds, [tuple(map(_physical, row)) if columns else () for row in rows])


def _physical(value: Any) -> Any:
    match value:
        case str():
            return value.encode()
        case dt.date():
            return (value - dt.date(1970, 1, 1)).days
    return value


def _shown(value: Any, kind: Kind) -> Any:
    match kind.name:
        case "string" if value is not None:
            return value.decode()
        case "date" if value is not None:
            return dt.date(1970, 1, 1) + dt.timedelta(days=value)
        case "decimal" if value is not None:
            return Decimal(value)
    return value


def rows_at_hand(connection: duckdb.DuckDBPyConnection, name: Name, node: Node, *, large: bool) -> list[Any] | None:
    """The rows of a node, as DuckDB would show them; None where it is for Spark to compute."""
    try:
        found = evaluated(node, OfDuck(connection, name, large))
    except NotLocal:
        return None
    if UNKNOWN in found.kinds:
        return None  # nothing that is stored has no type
    return [tuple(_shown(value, kind) for value, kind in zip(row, found.kinds, strict=True)) for row in found.rows]
