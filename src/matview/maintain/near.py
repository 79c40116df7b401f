"""Keys of few rows, told on the driver: a Spark job for them would take longer than all the rest of a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from matview.algebra.nodes import OLD_SUFFIX, UPDATES, Aggregate, Change, Filter, Node, Project, Stored
from matview.algebra.origins import origins
from matview.storage.snapshot import DataFile
from matview.storage.table import VersionedTable
from matview.versions.layout import Layout
from matview.versions.tuples import Operation

Few = Callable[[Change | Stored, Sequence[str]], pa.Table | None]
"""The rows of a leaf in some of its columns, under their names, if they are at hand."""


def keys_at_hand(node: Node, few: Few) -> pa.Table | None:
    """The distinct rows of a node that only picks columns of a leaf, or some more: conditions are left aside."""
    names, shown = node.names, node.names
    while isinstance(node, Filter | Aggregate | Project):
        if isinstance(node, Aggregate) and node.aggregates:
            return None
        sources = [origins(node, name) for name in names]
        if not all(sources):
            return None
        names = tuple(source for ((_, source), *_) in sources)
        node = node.input
    found = few(node, names) if isinstance(node, Change | Stored) else None
    if found is None or any(pa.types.is_nested(field.type) for field in found.schema):
        return None
    plain = found.rename_columns([f"k{n}" for n in range(len(names))])
    return plain.group_by(plain.column_names).aggregate([]).rename_columns(list(shown))


def can_be_sent(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which values Python has: days of the years 1 to 9999, texts in UTF-8, nulls. Sources have no others."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        number = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
        first, last = DAYS if pa.types.is_date(values.type) else MICROSECONDS
        within = pc.and_(pc.greater_equal(number, first), pc.less_equal(number, last))
    elif pa.types.is_string(values.type):
        within = pa.chunked_array([[_is_text(one) for one in values.cast(pa.binary()).to_pylist()]], pa.bool_())
    else:
        return pa.chunked_array([pa.repeat(pa.scalar(True), len(values))])
    return pc.or_(pc.fill_null(within, False), pc.is_null(values))


DAYS = -719_162, 2_932_896
MICROSECONDS = DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1
"""From the first day of the year 1 to the last of 9999, counted from 1970."""


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def changed_rows(
    table: VersionedTable, files: Sequence[DataFile], leaf: Change, names: Sequence[str]
) -> pa.Table | None:
    """What tuples became and what they were, in columns of a change, without weights; None if they are not few."""
    own = [leaf.scan.columns[leaf.scan.names.index(name)] for name in names if name in leaf.scan.names]
    if len(own) < len(names) or any(c.endswith(OLD_SUFFIX) or c == UPDATES for c in own):
        return None
    tuples = table.few(files)
    if tuples is None:
        return None
    layout, operation = table.layout, tuples[table.layout.op(1)]
    comes = pc.is_in(operation, pa.array([Operation.INSERT, Operation.UPDATE], pa.int8()))
    goes = pc.is_in(operation, pa.array([Operation.UPDATE, Operation.DELETE], pa.int8()))
    now, then = tuples.filter(comes).select(own), tuples.filter(goes).select([_before(layout, c) for c in own])
    unique = [f"k{n}" for n in range(len(own))]
    return pa.concat_tables([now.rename_columns(unique), then.rename_columns(unique)])


def _before(layout: Layout, name: str) -> str:
    return layout.pre(1, name) if name in layout.updatable else name
