"""Pairs of few rows on the driver are those that Spark makes of many."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from matview.algebra.schema import Column, Schema
from matview.maintain.change.pairs import pairs, pairs_of_few
from matview.storage.engine import Engine
from matview.versions.layout import Layout

COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "k": ("int", [1, 2, 3, None]),
    "f": ("double", [0.0, -0.0, float("nan"), None, 1.5]),
    "d": ("decimal(9,2)", [Decimal("1.00"), Decimal("1.10"), None]),
    "t": ("timestamp", [datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), None]),
    "v": ("string", ["a", "", None]),
    "w": ("date", [date(2026, 1, 1), None]),
}
KEY = ("k", "f", "d", "t")


def test_on_the_driver_as_on_spark(spark: Any) -> None:
    random = Random(7)
    layout = Layout(Schema(tuple(Column(name, kind) for name, (kind, _) in COLUMNS.items()), KEY), 2)
    engine = Engine(spark)
    rows = [[random.choice(values) for _, values in COLUMNS.values()] + [random.choice([-1, 1, 2])] for _ in range(300)]
    struct = engine.struct([*((name, kind) for name, (kind, _) in COLUMNS.items()), ("__weight", "bigint")])
    net = spark.createDataFrame(rows, struct).coalesce(1)
    few = pairs_of_few(engine, net.toArrow(), struct, layout)
    many = pairs(net, layout)
    assert few.rows.columns == many.columns
    assert few.rows.exceptAll(many).count() == 0
    assert many.exceptAll(few.rows).count() == 0
    assert few.few is not None
    assert few.few.num_rows == many.count() > 50


def test_no_rows(spark: Any) -> None:
    layout = Layout(Schema((Column("k", "int"), Column("v", "string")), ("k",)), 2)
    struct = Engine(spark).struct([("k", "int"), ("v", "string"), ("__weight", "bigint")])
    none = pa.schema([("k", pa.int32()), ("v", pa.string()), ("__weight", pa.int64())]).empty_table()
    assert pairs_of_few(Engine(spark), none, struct, layout).is_empty
