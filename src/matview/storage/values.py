"""Columns of Arrow as the values that `matview.local` computes with, and back."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from matview.local.kinds import Kind, NotLocal, Value
from matview.local.scalars import Row

_TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "float": pa.float32(),
    "double": pa.float64(),
}


def arrow_of(kind: Kind) -> pa.DataType:
    if kind.name in ("null", "unknown"):
        raise NotLocal("a column of which the type is not known here")
    return pa.decimal128(kind.precision, kind.scale) if kind.name == "decimal" else _TYPES[kind.name]


def spark_of(kind: Kind) -> str:
    """The text of its Spark type."""
    return f"decimal({kind.precision},{kind.scale})" if kind.name == "decimal" else kind.name


def values_of(column: pa.ChunkedArray) -> list[Value]:
    """What a column holds; of a struct with one field, what that holds."""
    kind = column.type
    if pa.types.is_struct(kind):
        return values_of(pc.struct_field(column, 0))
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_string(kind):
        column = column.cast(pa.binary())
    found: list[Value] = column.to_pylist()
    return found


def rows_of(table: pa.Table, names: Sequence[str]) -> list[Row]:
    columns = [values_of(table[name]) for name in names]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def column_of(values: Sequence[Value], kind: pa.DataType) -> pa.Array:
    """NotLocal if it has no such values: more digits than there are, a number out of range."""
    if pa.types.is_integer(kind) and any(isinstance(value, Decimal | float) for value in values):
        raise NotLocal("a number that would be cut off")
    try:
        if pa.types.is_date32(kind):
            return pa.array(values, pa.int32()).cast(kind)
        if pa.types.is_timestamp(kind):
            return pa.array(values, pa.int64()).cast(kind)
        if pa.types.is_string(kind):
            return pa.array(values, pa.binary()).view(kind)
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise NotLocal(str(error)) from None


def table_of(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    return table_of_columns([[row[i] for row in rows] for i in range(len(schema))], schema)


def table_of_columns(columns: Sequence[Sequence[Value]], schema: pa.Schema) -> pa.Table:
    arrays = [column_of(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
