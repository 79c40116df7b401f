"""Values of a driver as Arrow, each in the type of its column or not at all: an error names the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from matview.errors import TypeNotCarried
from matview.sources.engine import SourceColumn
from matview.sources.types import arrow_fields, arrow_type

Class = type
NOTHING = type(None)
Row = tuple[Any, ...]
Where = Callable[[int], str]
"""What to call the row of that number in an error."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Source types of one kind: their Spark type, what a driver may give for a value, and what Arrow takes for it."""

    declared: tuple[str, ...]
    type: str
    storage: frozenset[Class]
    what: str
    """What a value must be, in words."""
    value: Callable[[Any], Any] | None = None


def batch(
    rows: Sequence[Row], columns: Sequence[SourceColumn], carriers: Sequence[Carried], where: Where
) -> pa.RecordBatch:
    """The first values of each row, as many as there are columns."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [array(column, carriers[n], values[n], where) for n, column in enumerate(columns)]
    return pa.record_batch(arrays, schema=pa.schema(arrow_fields(columns)))


def array(column: SourceColumn, carried: Carried, values: Sequence[Any], where: Where) -> pa.Array:
    try:
        return converted(carried, column.type, values)
    except (ValueError, TypeError, pa.ArrowException):
        number = next(n for n, value in enumerate(values) if not is_carried(carried, column.type, value))
    raise TypeNotCarried(
        f"column {column.name!r} of {where(number)} has {shown(values[number])}, which is no {column.source_type}",
        help=f"a value of {column.source_type} is {carried.what}; correct the row in the source",
    )


def converted(carried: Carried, spark_type: str, values: Sequence[Any]) -> pa.Array:
    """An array, if every value is null or what the type allows."""
    if not set(map(type, values)) <= carried.storage | {NOTHING}:
        raise TypeError("another storage class")
    if carried.value is not None:
        function = carried.value
        values = [None if value is None else function(value) for value in values]
    return pa.array(values, arrow_type(spark_type))


def is_carried(carried: Carried, spark_type: str, value: object) -> bool:
    try:
        converted(carried, spark_type, [value])
    except (ValueError, TypeError, pa.ArrowException):
        return False
    return True


def shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
