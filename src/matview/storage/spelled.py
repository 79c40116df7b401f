"""Few rows as the text of a query. Of some tens of values that is the quickest way into a plan: rows from Arrow are a
relation of their own first, which the query must then be told the name of; that takes Spark three times as long.

    SELECT * FROM VALUES (if(TRUE, 1L, NULL), if(TRUE, DATE'2020-01-01', NULL)), (2L, NULL) AS v(`id`, `day`)

The first row says that every column may be null, whatever happens to be in it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import types as t

from matview.versions.text import quoted

T = TypeVar("T")

MOST_SPELLED = 500
"""Values; of more, Arrow is as quick."""
LONGEST = 20_000
"""Bytes of them."""


def spelled(rows: pa.Table, struct: t.StructType) -> str | None:
    """A query that gives these rows; None if they are not few, or if SQL has no way to write one of their values."""
    if rows.num_rows * rows.num_columns > MOST_SPELLED or rows.nbytes > LONGEST:
        return None
    names = ", ".join(map(quoted, struct.names))
    fields = list(zip(rows.columns, (field.dataType for field in struct.fields), strict=True))
    try:
        columns = [_column(_values(column, kind), kind) for column, kind in fields]
    except (ValueError, OverflowError):  # a year beyond 9999, a text that is not UTF-8
        return None
    told = ", ".join(f"({', '.join(row)})" for row in zip(*columns, strict=True))
    return f"SELECT * FROM VALUES {told} AS v({names}){'' if rows.num_rows else ' WHERE FALSE'}"


def _values(column: pa.ChunkedArray, kind: t.DataType) -> list[object]:
    """Of moments their microseconds: to tell them in a text takes a time zone."""
    return list((column.cast(pa.int64()) if isinstance(kind, t.TimestampType) else column).to_pylist())


def _column(values: list[object], kind: t.DataType) -> list[str]:
    """One value at least, for there is no VALUES without any."""
    spell = _spelling(kind)
    name = "timestamp_ltz" if isinstance(kind, t.TimestampType) else kind.simpleString()  # the other name can be set
    first, *others = (f"CAST(NULL AS {name})" if v is None else spell(v) for v in values or [None])
    return [f"if(TRUE, {first}, NULL)", *others]


def _spelling(kind: t.DataType) -> Callable[[object], str]:
    """How values of a type are written; ValueError if they are not."""
    match kind:
        case t.StringType():
            return _text
        case t.BinaryType():
            return lambda value: f"X'{_as(value, bytes).hex()}'"
        case t.DateType():
            return lambda value: f"DATE'{_as(value, date).isoformat()}'"
        case t.TimestampType():
            return lambda value: f"timestamp_micros(CAST('{value}' AS BIGINT))"
        case t.TimestampNTZType():
            return lambda value: f"TIMESTAMP_NTZ'{_as(value, datetime).isoformat(sep=' ')}'"
        case t.IntegerType():
            return lambda value: str(value) if _as(value, int) >= 0 else _cast(value, kind)
        case t.LongType():
            return lambda value: f"{value}L" if _as(value, int) >= 0 else _cast(value, kind)
        case t.DecimalType():
            return lambda value: _cast(f"{_as(value, Decimal):f}", kind)
        case t.BooleanType() | t.ByteType() | t.ShortType() | t.FloatType() | t.DoubleType():
            return lambda value: _cast(value, kind)
    raise ValueError(kind.simpleString())


def _cast(value: object, kind: t.DataType) -> str:
    return f"CAST('{value}' AS {kind.simpleString()})"


def _text(value: object) -> str:
    """By its bytes, unless it is plain: how Spark reads what is escaped can be set."""
    text = _as(value, str)
    if text.isascii() and text.isprintable() and "'" not in text and "\\" not in text:
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _as(value: object, kind: type[T]) -> T:
    assert isinstance(value, kind)
    return value
