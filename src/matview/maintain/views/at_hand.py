"""What follows from few changed rows, computed on the driver, where Arrow computes as Spark does.

Tables are looked up by the values that the rows at hand have; nothing of it starts a Spark job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from matview.algebra.nodes import Change, Node, Scan, Stored
from matview.local.batch import one_array
from matview.local.kinds import FOR_SPARK, NULL, Kind, NotLocal, arrow_of, held_as, kind_of, spark_of
from matview.local.reach import MOST_ROWS, SMALL_TABLE
from matview.local.relations import Rows, Wanted, evaluated, no_more_than_most, rehearsed, repeated
from matview.local.scalars import converted
from matview.maintain.change.given import Given
from matview.maintain.change.working import Working
from matview.maintain.context import Context
from matview.storage.changes_of_few import changes_of_few
from matview.storage.engine import Engine
from matview.storage.few import are_few, most
from matview.storage.lookup import looked_up
from matview.storage.snapshot import DataFile
from matview.versions.layout import COUNT, Layout
from matview.versions.tuples import Operation

Shared = Callable[[str], Given | None]
LOOKED_UP = frozenset({"tinyint", "smallint", "int", "bigint", "string", "date"})


def at_hand(context: Context, node: Node, changed: Mapping[str, Sequence[DataFile]], shared: Shared) -> Rows | None:
    """The rows of a node; None if they are for Spark to compute."""
    if most() <= 0:
        return None
    try:
        if not are_few(sum(f.rows for files in changed.values() for f in files)):
            rehearsed(node)
        return evaluated(node, _Reader(context, changed, shared))
    except FOR_SPARK:
        return None


def given_rows(engine: Engine, found: Rows, types: Mapping[str, str] | None = None) -> Given | None:
    """Rows in their own types, or in those that are named, which must be able to hold them."""
    try:
        kinds = dict(zip(found.names, found.kinds, strict=True))
        if types is not None:
            kinds = {name: held_as(kind, kind_of(types[name])) for name, kind in kinds.items()}
        if NULL in kinds.values():
            raise NotLocal("a column of which the type is not known here")
        held = {name: converted(found.column(name), arrow_of(kind)) for name, kind in kinds.items()}
    except FOR_SPARK:
        return None
    return Given.local(engine, pa.table(held), engine.struct([(name, spark_of(kind)) for name, kind in kinds.items()]))


class _Reader:
    def __init__(self, context: Context, changed: Mapping[str, Sequence[DataFile]], shared: Shared) -> None:
        self._context = context
        self._changed = changed
        self._shared = shared

    def change(self, leaf: Change) -> Rows:
        scan = leaf.scan
        found = changes_of_few(self._context.tables[scan.table].table, self._changed[scan.table], scan.columns)
        return Rows(leaf.names, found.kinds, found.columns, found.size)

    def scan(self, leaf: Scan, wanted: Wanted | None) -> Rows:
        return _read(self._context.tables[leaf.table], leaf.names, leaf.columns, wanted)

    def stored(self, leaf: Stored, wanted: Wanted | None) -> Rows:
        shared = self._shared(leaf.view)
        if shared is None:
            return _read(self._context.tables[leaf.view], leaf.names, leaf.names, wanted)
        if shared.few is None:
            raise NotLocal("many rows")
        kinds = tuple(kind_of(shared.schema[name].dataType.simpleString()) for name in leaf.names)
        return _rows(leaf.names, kinds, shared.few.select(leaf.names))


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
    rows = _rows(names, kinds, live.select(columns))
    return repeated(rows, one_array(live[COUNT])) if bag else rows


def _rows(names: tuple[str, ...], kinds: tuple[Kind, ...], table: pa.Table) -> Rows:
    no_more_than_most(table.num_rows)
    columns = zip(map(one_array, table.columns), kinds, strict=True)
    return Rows(names, kinds, tuple(converted(column, arrow_of(kind)) for column, kind in columns), table.num_rows)


def _values(layout: Layout, column: str, wanted: Wanted) -> dict[str, pa.Array]:
    kind = kind_of(layout.type_of(column))
    if kind.name not in LOOKED_UP:
        raise NotLocal(f"values of type {kind.name} are not looked up")
    return {column: wanted.among(arrow_of(kind))}
