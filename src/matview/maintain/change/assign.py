"""Store assignment: which type may go into which column, and how it gets there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from matview.algebra.schema import Column as SchemaColumn
from matview.algebra.schema import Schema
from matview.errors import TypeMismatch, UnknownColumn
from matview.versions.text import quoted

_TEMPORAL = (t.DateType, t.TimestampType, t.TimestampNTZType)
_SIZED = re.compile(r"^\s*(var)?char\s*\(\s*(\d+)\s*\)\s*$", re.IGNORECASE)


def assignable(source: t.DataType, target: t.DataType) -> bool:
    """ANSI store assignment, and a string where a date or a time is wanted (which fails if it is none)."""
    if source == target or isinstance(source, t.NullType):
        return True
    match source, target:
        case t.ArrayType(), t.ArrayType():
            return assignable(source.elementType, target.elementType)
        case t.MapType(), t.MapType():
            return assignable(source.keyType, target.keyType) and assignable(source.valueType, target.valueType)
        case t.StructType(), t.StructType():
            pairs = zip(source.fields, target.fields, strict=False)
            return len(source) == len(target) and all(assignable(a.dataType, b.dataType) for a, b in pairs)
        case t.NumericType(), t.NumericType():
            return True
        case t.StringType(), t.StringType():
            return True
        case t.StringType(), _:
            return isinstance(target, (*_TEMPORAL, t.BinaryType, t.DayTimeIntervalType, t.YearMonthIntervalType))
        case t.AtomicType(), t.StringType():
            return not isinstance(source, t.BinaryType)
        case _:
            return type(source) is type(target) or (isinstance(source, _TEMPORAL) and isinstance(target, _TEMPORAL))


def check_assignable(source: t.DataType, target: t.DataType, column: str) -> None:
    if not assignable(source, target):
        raise TypeMismatch(
            f"column {column!r} is {target.simpleString()}, the value given is {source.simpleString()}",
        )


def is_sized(kind: str) -> bool:
    """char(n) or varchar(n)."""
    return _SIZED.match(kind) is not None


def assigned_sql(sql: str, column: SchemaColumn) -> str:
    """The SQL of a value on its way into a column; too long a text for char(n) or varchar(n) fails."""
    sized = _SIZED.match(column.type)
    if not sized:
        return f"CAST({sql} AS {column.type})"
    limit = int(sized[2])
    message = f"[MV204] a value is longer than the {limit} characters that column {column.name!r} takes"
    fitting = "__v" if sized[1] else f"rpad(__v, {limit}, ' ')"
    quoted = message.replace("'", "\\'")
    checked = f"CASE WHEN length(__v) > {limit} THEN raise_error('{quoted}') ELSE {fitting} END"
    return f"element_at(transform(array(CAST({sql} AS string)), __v -> {checked}), 1)"  # computed once


def conformed(rows: DataFrame, schema: Schema, struct: t.StructType, beside: Sequence[str] = ()) -> DataFrame:
    """Rows with exactly the table's columns, by name, in its types, and `beside`; columns left out are null."""
    given: dict[str, t.StructField] = {}
    for field in rows.schema.fields:
        if field.name in beside:
            continue
        column = schema.column(field.name)
        if column is None:
            raise UnknownColumn(f"the table has no column {field.name!r}")
        given[column.name] = field
    made: list[Column] = [F.col(name) for name in beside]
    for column in schema.columns:
        target = struct[column.name].dataType
        if column.name not in given:
            made.append(F.lit(None).cast(target).alias(column.name))
            continue
        source = given[column.name]
        check_assignable(source.dataType, target, column.name)
        value = F.expr(assigned_sql(quoted(source.name), column))
        made.append(value.alias(column.name))
    return rows.select(*made)
