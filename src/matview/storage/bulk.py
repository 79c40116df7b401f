"""Tuples of a new table, made on the driver as its rows come in: one pass over them, and no Spark job.

They say that they were inserted by a version that was there when the table was not: whoever sees the table sees them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matview.storage.engine import Engine
from matview.storage.few import AS_SPARK_DOES, arrow_schema
from matview.storage.files import Files
from matview.storage.floats import arrow_options, exact_columns
from matview.versions.layout import RID, Layout
from matview.versions.tuples import Operation

ROW_GROUP = 131_072
SAMPLE = 4_096


class Bulk:
    """New tuples of one table; identities are given in the order in which rows come. Threads may share it."""

    def __init__(self, layout: Layout, schema: pa.Schema, vn: int) -> None:
        self.schema = schema
        self._layout = layout
        self._vn = vn
        self._next_rid = 0
        self._lock = threading.Lock()

    @property
    def next_rid(self) -> int:
        return self._next_rid

    def tuples(self, rows: pa.Table) -> pa.Table:
        """The third row of Table 2: slot 1 says insert. What is null in all of them is left out, and reads as null."""
        count = rows.num_rows
        with self._lock:
            first, self._next_rid = self._next_rid, self._next_rid + count
        known = {name: rows.column(name) for name in self._layout.current}
        known[RID] = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=first - 1)
        known[self._layout.vn(1)] = pa.repeat(pa.scalar(self._vn, pa.int64()), count)
        known[self._layout.op(1)] = pa.repeat(pa.scalar(int(Operation.INSERT), pa.int8()), count)
        return pa.Table.from_arrays([known[field.name].cast(field.type) for field in self.schema], schema=self.schema)


def bulk(engine: Engine, layout: Layout, vn: int) -> Bulk | None:
    """None for a bag, whose rows have to be counted, and for types that do not travel: that is Spark's work."""
    kept = {RID, *layout.current, layout.vn(1), layout.op(1)}
    columns = [(name, kind) for name, kind in layout.columns if name in kept]
    schema = None if layout.schema.is_bag else arrow_schema(engine.struct(columns))
    return None if schema is None else Bulk(layout, schema, vn)


def write(files: Files, path: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """A file as Spark would write it; how many rows it has. Without any, there is none."""
    arriving = (table for table in tables if table.num_rows)
    first = next(arriving, None)
    if first is None:
        return 0
    count = int(first.num_rows)
    options: dict[str, object] = dict(arrow_options(schema))
    options["use_dictionary"] = [name for name in exact_columns(schema) if repeats(first[name])]
    if RID in schema.names:
        options["column_encoding"] = {RID: "DELTA_BINARY_PACKED"}
    with files.output(path) as stream, pq.ParquetWriter(stream, schema, **AS_SPARK_DOES, **options) as writer:
        writer.write_table(first)
        for table in arriving:
            count += int(table.num_rows)
            writer.write_table(table)
    return count


def repeats(column: pa.ChunkedArray) -> bool:
    """Whether a dictionary is worth its while, judged by the first rows. To make one of values that hardly repeat, and
    to give it up again, takes more than half of the time to write a file, and the file is larger for it."""
    some = column.slice(0, SAMPLE)
    return pa.types.is_nested(some.type) or bool(2 * pc.count_distinct(some, mode="all").as_py() <= len(some))


def gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches put together until they are worth a row group."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= ROW_GROUP:
            yield pa.Table.from_batches(held, schema)
            held = []
    if held:
        yield pa.Table.from_batches(held, schema)
