"""The Arrow types of Spark types: those that a source may give."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from matview.errors import TypeNotCarried
from matview.sources.engine import WEIGHT, SourceColumn, SourceTable

PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)\Z")
ARRAY = re.compile(r"array<(.+)>\Z")

WEIGHT_FIELD = pa.field(WEIGHT, pa.int64(), nullable=False)


def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type that Spark reads as this type."""
    if spark_type in PLAIN:
        return PLAIN[spark_type]
    if match := DECIMAL.match(spark_type):
        return pa.decimal128(int(match[1]), int(match[2]))
    if match := ARRAY.match(spark_type):
        return pa.list_(arrow_type(match[1]))
    raise TypeNotCarried(f"no source gives a {spark_type}")


def spark_type(type_: pa.DataType) -> str:
    """The Spark type that an Arrow type is read as."""
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    if pa.types.is_large_string(type_):
        return "string"
    for name, plain in PLAIN.items():
        if plain == type_:
            return name
    raise TypeNotCarried(f"no source takes an Arrow {type_}")


def arrow_fields(columns: Iterable[SourceColumn]) -> list[pa.Field]:
    """The columns as Arrow fields; what the source says of nulls is not relied upon."""
    return [pa.field(column.name, arrow_type(column.type)) for column in columns]


def arrow_schema(table: SourceTable) -> pa.Schema:
    """The rows of a table."""
    return pa.schema(arrow_fields(table.columns))


def change_schema(table: SourceTable) -> pa.Schema:
    """The changes of a table: its rows, and how often each came or went."""
    return arrow_schema(table).append(WEIGHT_FIELD)
