"""Few tuples of plain types are read and written on the driver: a Spark job for them would cost more than they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as t

from matview.storage.files import Files
from matview.storage.floats import arrow_options
from matview.storage.groups import GROUP_BYTES, GROUP_ROWS
from matview.storage.snapshot import DataFile

FEW_ROWS = 20_000
"""So many can stand in one of Spark's plans; Arrow takes more of them, where Spark has no part in it."""
_ARROW: dict[type[t.DataType], pa.DataType] = {
    t.ByteType: pa.int8(),
    t.ShortType: pa.int16(),
    t.IntegerType: pa.int32(),
    t.LongType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.BooleanType: pa.bool_(),
    t.BinaryType: pa.binary(),
    t.DateType: pa.date32(),
    t.TimestampType: pa.timestamp("us", "UTC"),
    t.TimestampNTZType: pa.timestamp("us"),
}

ENCODED = 4
"""So many times smaller are columns in a file than in memory, about."""
AS_SPARK_DOES = {
    "compression": "zstd",
    "coerce_timestamps": "us",
    "store_decimal_as_integer": True,
    "store_schema": False,
}


def most() -> int:
    """How many rows are few."""
    return FEW_ROWS


def are_few(count: float) -> bool:
    return count <= most()


def arrow_type(kind: t.DataType) -> pa.DataType | None:
    """The type on the driver of values that are the same after the way there and back; None for all others."""
    if isinstance(kind, t.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return pa.string() if kind == t.StringType() else _ARROW.get(type(kind))


def arrow_schema(struct: t.StructType) -> pa.Schema | None:
    """None if some column is of a type that does not travel."""
    kinds = [(field.name, arrow_type(field.dataType)) for field in struct.fields]
    return None if any(kind is None for _, kind in kinds) else pa.schema(kinds)


def read_few(
    read: Callable[[DataFile, pa.Schema], pa.Table], data: Sequence[DataFile], struct: t.StructType, limit: int | None
) -> pa.Table | None:
    """The tuples of the files; None if they are more than a limit, or not few, or of types that do not travel."""
    schema = arrow_schema(struct)
    if schema is None or sum(f.rows for f in data) > (most() if limit is None else limit):
        return None
    tables = [read(file, schema) for file in data]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def shaped(found: pa.Table, schema: pa.Schema, rows: int) -> pa.Table:
    """So many rows in the columns of a schema; one that is missing is null."""
    there = set(found.column_names)
    columns = [
        found[field.name].cast(field.type) if field.name in there else pa.nulls(rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def write_few(files: Files, path: str, tuples: pa.Table) -> tuple[int, pq.FileMetaData]:
    """One file, as Spark would write it but for its own notes; its size and its footer."""
    footers: list[pq.FileMetaData] = []
    rows = max(1, min(GROUP_ROWS, ENCODED * GROUP_BYTES * tuples.num_rows // max(1, tuples.nbytes)))
    told = AS_SPARK_DOES | arrow_options(tuples.schema) | {"metadata_collector": footers}
    with files.output(path) as stream:
        pq.write_table(tuples, stream, row_group_size=rows, **told)
        return stream.tell(), footers[0]


def distinct_values(*columns: pa.ChunkedArray) -> frozenset[Any] | None:
    """None if Python has no such value: a year beyond 9999 or before 1, a text that is not UTF-8."""
    try:
        return frozenset(value for column in columns for value in column.unique().to_pylist())
    except (ValueError, OverflowError):
        return None


def structs(table: pa.Table, absent: Sequence[bool]) -> pa.StructArray:
    """Each row as one value, null where it is absent."""
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(arrays, names=table.column_names, mask=pa.array(absent, pa.bool_()))
