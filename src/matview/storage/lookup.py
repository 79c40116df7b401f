"""Stored tuples by the values of some columns, read on the driver: few values meet few row groups, if any.

A row group is opened only if its bounds, and then the columns themselves, have some of the values. None is the answer
where that would be to read much, or where the driver has no such values: then Spark shall look.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matview.storage.few import arrow_schema, shaped
from matview.storage.files import translated_storage
from matview.storage.snapshot import DataFile, Level
from matview.storage.stats import group_bounds
from matview.storage.table import VersionedTable
from matview.versions.layout import RID
from matview.versions.tuples import Operation

Wanted = Mapping[str, pa.Array]
"""Values by column; of no column, everything is wanted."""
MOST_LOOKED_THROUGH = 10_000_000
"""Values, in the columns that are looked up by and in the row groups that have those wanted."""
MOST_HIDING = 200_000
"""Tuples in the overlay."""


def looked_up(
    table: VersionedTable, files: Sequence[DataFile], columns: Sequence[str], wanted: Wanted
) -> pa.Table | None:
    """The newest state of each tuple that has one of the values wanted in every column named; void ones are left out.

    The columns come in stored order, with `__rid`, `__vn1` and `__op1` among them.
    """
    layout = table.layout
    asked = {*columns, *wanted, RID, layout.vn(1), layout.op(1)}
    schema = arrow_schema(table.engine.struct([c for c in layout.columns if c[0] in asked]))
    overlay = [f for f in files if f.level is Level.OVERLAY]
    if schema is None or sum(f.rows for f in overlay) > MOST_HIDING:
        return None
    if not all(map(len, wanted.values())):
        return schema.empty_table()
    look = _Look(table, schema, wanted)
    base, later = look.among(f for f in files if f.level is Level.BASE), look.among(overlay)
    if base is None or later is None:
        return None
    found = _newest(table, base, later, overlay) if overlay else base
    return found.filter(pc.not_equal(found[layout.op(1)], int(Operation.VOID)))


def _newest(table: VersionedTable, base: pa.Table, later: pa.Table, overlay: Sequence[DataFile]) -> pa.Table:
    """Whatever the overlay has a later state of is hidden, in the base and in the overlay itself."""
    vn = table.layout.vn(1)
    states = pa.concat_tables(table.states(file) for file in overlay)
    shown = base.filter(pc.invert(pc.is_in(base[RID], states[RID].combine_chunks())))
    if not later.num_rows:
        return shown
    concerned = states.filter(pc.is_in(states[RID], later[RID].combine_chunks()))
    greatest = concerned.group_by(RID).aggregate([(vn, "max")])
    newest = dict(zip(greatest[RID].to_pylist(), greatest[f"{vn}_max"].to_pylist(), strict=True))
    keep = [newest[rid] == at for rid, at in zip(later[RID].to_pylist(), later[vn].to_pylist(), strict=True)]
    return pa.concat_tables([shown, later.filter(pa.array(keep, pa.bool_()))])


class _Look:
    """A look through files for values of some columns; what it reads is counted."""

    def __init__(self, table: VersionedTable, schema: pa.Schema, wanted: Wanted) -> None:
        self._table = table
        self._schema = schema
        self._wanted = wanted
        self._sorted = {name: known for name, values in wanted.items() if (known := _sorted(values)) is not None}
        self._left = MOST_LOOKED_THROUGH

    def among(self, files: Iterable[DataFile]) -> pa.Table | None:
        """The stored states with the values; None if that is to read too much."""
        found = [self._schema.empty_table()]
        for file in files:
            footer = self._table.footer(file.path)
            groups = self._groups(footer)
            if not groups:
                continue
            with translated_storage(f"reading {file.path}"), self._table.files.input(file.path) as stream:
                parts = self._of_groups(pq.ParquetFile(stream, metadata=footer), groups)
            if parts is None:
                return None
            found += parts
        return pa.concat_tables(found)

    def _groups(self, footer: pq.FileMetaData) -> list[int]:
        """The row groups that may have the values, by their bounds."""
        places = {name: place for name in self._sorted if (place := _place(footer, name)) is not None}
        return [
            number
            for number in range(footer.num_row_groups)
            if all(self._may_have(footer.row_group(number).column(place), name) for name, place in places.items())
        ]

    def _may_have(self, column: pq.ColumnChunkMetaData, name: str) -> bool:
        there = group_bounds(column)
        if there is None:
            return True
        if not there:
            return False  # nothing but nulls
        least, greatest = there
        values = self._sorted[name]
        return bisect_left(values, least) < bisect_right(values, greatest)

    def _of_groups(self, file: pq.ParquetFile, groups: Sequence[int]) -> list[pa.Table] | None:
        found = []
        for group in groups:
            rows = file.metadata.row_group(group).num_rows
            if not self._may_read(rows * len(self._wanted)):
                return None
            hits = self._hits(file, group, rows)
            if not hits.true_count:
                continue
            if not self._may_read(rows * len(self._schema)):
                return None
            found.append(shaped(self._read(file, group, self._schema.names), self._schema, rows).filter(hits))
        return found

    def _may_read(self, values: int) -> bool:
        self._left -= values
        return self._left >= 0

    def _hits(self, file: pq.ParquetFile, group: int, rows: int) -> pa.BooleanArray:
        """Which rows have one of the values in every column."""
        names = list(self._wanted)
        schema = pa.schema([self._schema.field(name) for name in names])
        columns = shaped(self._read(file, group, names), schema, rows)
        hits = pa.repeat(pa.scalar(True), rows)
        for name, values in self._wanted.items():
            hits = pc.and_(hits, pc.is_in(columns[name].combine_chunks(), values))
        return hits

    @staticmethod
    def _read(file: pq.ParquetFile, group: int, names: Sequence[str]) -> pa.Table:
        there = set(file.schema_arrow.names)
        return file.read_row_group(group, [name for name in names if name in there])


def _sorted(values: pa.Array) -> list[Any] | None:
    """None if a null is among them, which is in no bounds, or one that Python has not."""
    if values.null_count:
        return None
    try:
        return sorted(values.to_pylist())
    except (ValueError, OverflowError):
        return None


def _place(footer: pq.FileMetaData, column: str) -> int | None:
    """Where a column of plain values is among the leaves of a file: one inside of another has a longer path."""
    leaves = (footer.schema.column(i) for i in range(footer.num_columns))
    return next((i for i, leaf in enumerate(leaves) if leaf.name == leaf.path == column), None)
