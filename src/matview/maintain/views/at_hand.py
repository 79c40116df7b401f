"""What follows from few changed rows, computed on the driver, where Python computes as Spark does.

Tables are looked up by the values that the rows at hand have; nothing of it starts a Spark job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from matview.algebra.nodes import Change, Node, Scan, Stored
from matview.local.kinds import FOR_SPARK, NotLocal, held_as, kind_of
from matview.local.relations import MOST_ROWS, SMALL_TABLE, Rows, Wanted, evaluated
from matview.local.scalars import Row
from matview.maintain.change.given import Given
from matview.maintain.change.working import Working
from matview.maintain.context import Context
from matview.storage.changes_of_few import changes_of_few
from matview.storage.engine import Engine
from matview.storage.few import most
from matview.storage.lookup import looked_up
from matview.storage.snapshot import DataFile
from matview.storage.values import arrow_of, column_of, rows_of, spark_of, table_of
from matview.versions.layout import COUNT, Layout
from matview.versions.tuples import Operation

Shared = Callable[[str], Given | None]
LOOKED_UP = frozenset({"tinyint", "smallint", "int", "bigint", "string", "date"})


def at_hand(context: Context, node: Node, changed: Mapping[str, Sequence[DataFile]], shared: Shared) -> Rows | None:
    """The rows of a node; None if they are for Spark to compute."""
    if most() <= 0:
        return None
    try:
        return evaluated(node, _Reader(context, changed, shared))
    except FOR_SPARK:
        return None


def given_rows(engine: Engine, found: Rows, types: Mapping[str, str] | None = None) -> Given | None:
    """Rows in their own types, or in those that are named, which must be able to hold them."""
    try:
        kinds = dict(zip(found.names, found.kinds, strict=True))
        if types is not None:
            kinds = {name: held_as(kind, kind_of(types[name])) for name, kind in kinds.items()}
        schema = pa.schema([(name, arrow_of(kind)) for name, kind in kinds.items()])
        few = table_of(found.rows, schema)
    except FOR_SPARK:
        return None
    return Given.local(engine, few, engine.struct([(name, spark_of(kind)) for name, kind in kinds.items()]))


class _Reader:
    def __init__(self, context: Context, changed: Mapping[str, Sequence[DataFile]], shared: Shared) -> None:
        self._context = context
        self._changed = changed
        self._shared = shared

    def change(self, leaf: Change) -> Rows:
        scan = leaf.scan
        found = changes_of_few(self._context.tables[scan.table].table, self._changed[scan.table], scan.columns)
        return Rows(leaf.names, found.kinds, found.rows)

    def scan(self, leaf: Scan, wanted: Wanted | None) -> Rows:
        return _read(self._context.tables[leaf.table], leaf.names, leaf.columns, wanted)

    def stored(self, leaf: Stored, wanted: Wanted | None) -> Rows:
        shared = self._shared(leaf.view)
        if shared is None:
            return _read(self._context.tables[leaf.view], leaf.names, leaf.names, wanted)
        if shared.few is None:
            raise NotLocal("many rows")
        kinds = tuple(kind_of(shared.schema[name].dataType.simpleString()) for name in leaf.names)
        return Rows(leaf.names, kinds, rows_of(shared.few, leaf.names))


def _read(working: Working, names: tuple[str, ...], columns: Sequence[str], wanted: Wanted | None) -> Rows:
    """The live rows of a table, in the transaction's own state, or those of them that are wanted."""
    table = working.table
    if table.remote is not None:
        raise NotLocal("a table that stays at its source")
    kinds = tuple(kind_of(table.layout.type_of(c)) for c in columns)
    bag = [COUNT] if table.schema.is_bag else []
    values = {} if wanted is None else _values(table.layout, columns[names.index(wanted.name)], wanted)
    if not values and sum(f.rows for f in working.current.files) > SMALL_TABLE:
        raise NotLocal("a table that nothing restricts")
    found = looked_up(table, working.current.files, [*columns, *bag], values, MOST_ROWS)
    if found is None:
        raise NotLocal("much to read")
    live = found.filter(pc.less_equal(found[table.layout.op(1)], int(Operation.UPDATE)))
    return Rows(names, kinds, _repeated(rows_of(live, [*columns, *bag])) if bag else rows_of(live, columns))


def _values(layout: Layout, column: str, wanted: Wanted) -> dict[str, pa.Array]:
    kind = kind_of(layout.type_of(column))
    if kind.name not in LOOKED_UP:
        raise NotLocal(f"values of type {kind.name} are not looked up")
    found = column_of([value for value in wanted.values if value is not None], arrow_of(kind))
    return {column: pa.concat_arrays([found, pa.nulls(1, found.type)]) if None in wanted.values else found}


def _repeated(rows: Sequence[Row]) -> list[Row]:
    """A bag's rows as often as they are in it."""
    if sum(int(row[-1] or 0) for row in rows) > MOST_ROWS:
        raise NotLocal("many rows")
    return [row[:-1] for row in rows for _ in range(int(row[-1] or 0))]
