"""Few rows as the text of a query: what Spark reads from it is what was there, in type, value and nullability."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from matview.storage.few import arrow_schema
from matview.storage.spelled import LONGEST, MOST_SPELLED, spelled

SHAPE = t.StructType(
    [
        t.StructField("a`b", t.LongType()),
        t.StructField("i", t.IntegerType()),
        t.StructField("s", t.ShortType()),
        t.StructField("y", t.ByteType()),
        t.StructField("b", t.BooleanType()),
        t.StructField("text {x}", t.StringType()),
        t.StructField("raw", t.BinaryType()),
        t.StructField("day", t.DateType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("then", t.TimestampNTZType()),
        t.StructField("d", t.DecimalType(38, 10)),
        t.StructField("f", t.FloatType()),
        t.StructField("g", t.DoubleType()),
    ]
)
NAIVE = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))
VALUES = [
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**15), 2**15 - 1),
    st.integers(-(2**7), 2**7 - 1),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["'", "\\n", "{x}", "`", "$1", "${spark.app.name}", ""]),
    st.binary(max_size=4),
    st.dates(date(1, 1, 1), date(9999, 12, 31)),
    NAIVE.map(lambda moment: moment.replace(tzinfo=UTC)),
    NAIVE,
    st.decimals(-(10**28) + 1, 10**28 - 1, places=10, allow_nan=False, allow_infinity=False),
    st.floats(width=32),
    st.floats(),
]
ROWS = st.lists(st.tuples(*(st.none() | values for values in VALUES)), max_size=6)


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    schema = arrow_schema(SHAPE)
    assert schema is not None
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def exact(row: tuple[object, ...]) -> tuple[object, ...]:
    """Zeros have signs, and NaN is itself."""
    return tuple(
        ("NaN" if math.isnan(value) else struct.pack("d", value)) if isinstance(value, float) else value
        for value in row
    )


def read(found: pa.Table) -> list[tuple[object, ...]]:
    return [exact(tuple(row.values())) for row in found.to_pylist()]


@settings(max_examples=40)
@given(rows=ROWS)
def test_what_is_spelled_is_read(spark: SparkSession, rows: list[tuple[object, ...]]) -> None:
    given_rows = table(rows)
    text = spelled(given_rows, SHAPE)
    assert text is not None
    found = spark.sql(text)
    assert found.schema == SHAPE
    schema = arrow_schema(SHAPE)
    assert sorted(map(repr, read(found.toArrow().cast(schema)))) == sorted(map(repr, read(given_rows)))


def test_what_is_not_spelled() -> None:
    one = t.StructType([t.StructField("a", t.LongType())])
    assert spelled(pa.table({"a": pa.array(range(MOST_SPELLED + 1), pa.int64())}), one) is None
    text = t.StructType([t.StructField("a", t.StringType())])
    assert spelled(pa.table({"a": ["x" * LONGEST]}), text) is None
    assert spelled(pa.table({"a": [Decimal(1)]}), t.StructType([t.StructField("a", t.DayTimeIntervalType())])) is None
    days = t.StructType([t.StructField("a", t.DateType())])
    assert spelled(pa.table({"a": pa.array([2**25], pa.int32()).cast(pa.date32())}), days) is None
