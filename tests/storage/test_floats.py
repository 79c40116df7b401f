"""NaN is greater than all numbers and 0.0 is -0.0, whoever wrote the file and whatever Spark skips by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import matview
from matview.storage.bulk import write
from matview.storage.files import Files

NAN, INFINITE = float("nan"), float("inf")
WRITES = [[0.0], [-0.0], [1.5, NAN], [1.5, None, INFINITE]]
"""Each a file of its own, so that there is something to skip."""
CONDITIONS = ["{0} = 0.0D", "{0} = -0.0D", "{0} <= -0.0D", "{0} >= 0.0D", "{0} > 100", "{0} = double('NaN')"]
CONDITIONS += ["{0} IN (-0.0D, 9.0D)", "NOT {0} < 100"]
REPEATED = 200  # so often that a dictionary is worth its while to Spark


def every_condition(columns: list[str], relation: str) -> str:
    """How many rows meet each, in one query of many scans."""
    asked = [condition.format(column) for column in columns for condition in CONDITIONS]
    counts = (f"SELECT {i} AS n, count(*) AS c FROM {relation} WHERE {sql}" for i, sql in enumerate(asked))
    return " UNION ALL ".join(counts)


def counted(frame: Any) -> dict[int, int]:
    return {row["n"]: row["c"] for row in frame.collect()}


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", spark=spark) as opened:
        yield opened


@pytest.mark.parametrize("nested", [False, True], ids=["by the driver", "by Spark"])
def test_no_row_is_skipped(nested: bool, warehouse: matview.Warehouse, spark: Any) -> None:
    """Structs are written by Spark, and what they hold is skipped by as well."""
    columns = ["s.x"] if nested else ["x", "f"]
    extra = ", s STRUCT<x: DOUBLE>" if nested else ""
    warehouse.sql(f"CREATE TABLE t (id INT PRIMARY KEY, x DOUBLE, f FLOAT{extra})")
    kinds = f"id INT, x DOUBLE, f FLOAT{extra}"
    made: list[tuple[Any, ...]] = []
    for values in WRITES:
        first = len(made)
        for i, v in enumerate(values * REPEATED, first):
            made.append((i, v, v, *([(v,)] * nested)))
        with warehouse.transaction() as tx:
            tx.insert("t", spark.createDataFrame(made[first:], kinds))
    spark.createDataFrame(made, kinds).createOrReplaceTempView("floats_told")
    wanted = counted(spark.sql(every_condition(columns, "floats_told")))
    assert counted(warehouse.sql(every_condition(columns, "t"))) == wanted
    warehouse.sql("UPDATE t SET f = 0, x = -0.0D WHERE x > 100")  # NaN and infinity, which is read as it was below
    nans = sum(values.count(v) for values in WRITES for v in (NAN, INFINITE)) * REPEATED
    zeros = sum(values.count(0.0) for values in WRITES) * REPEATED  # both
    assert warehouse.sql("SELECT * FROM t WHERE x = 0.0D AND f = float(-0.0)").count() == nans + zeros
    warehouse.sql("DELETE FROM t WHERE x = 0.0D")
    assert warehouse.sql("SELECT * FROM t WHERE x >= 0.0D").count() == wanted_after(made)


def wanted_after(made: list[tuple[Any, ...]]) -> int:
    return sum(1 for _, x, *_ in made if x is not None and 0 < x <= 100)


def test_no_row_of_a_bulk_is_skipped(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int32()), ("x", pa.float64()), ("f", pa.float32())])
    made: list[tuple[int, float | None, float | None]] = []
    for number, values in enumerate(WRITES):
        rows = [(i, v, v) for i, v in enumerate(values * REPEATED)]
        arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
        write(Files(str(tmp_path)), f"{number}.parquet", schema, [pa.Table.from_arrays(arrays, schema=schema)])
        made += rows
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("floats_read")
    spark.createDataFrame(made, "id INT, x DOUBLE, f FLOAT").createOrReplaceTempView("floats_told")
    wanted = counted(spark.sql(every_condition(["x", "f"], "floats_told")))
    assert counted(spark.sql(every_condition(["x", "f"], "floats_read"))) == wanted
