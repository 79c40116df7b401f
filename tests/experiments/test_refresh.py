"""How the bench of refreshes changes orders, and where it finds that computing anew becomes cheaper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench import tpch
from bench.orders import Kind, Orders
from bench.refresh import KEYS, KIND_SHARES, crossover

import matview

SCALE = 0.001
HOT = "pmod(xxhash64(o_orderkey, 3), 5) = 0"


@pytest.mark.conforms("C13")
def test_crossovers() -> None:
    one, other = KIND_SHARES[1:3]
    assert crossover([0.1, 0.5, 2.0, 3.0, 4.0]) == pytest.approx((one * other) ** 0.5)
    assert crossover([1.5, 2.0, 3.0, 4.0, 5.0]) == KIND_SHARES[0]
    assert crossover([0.1, 0.2, 0.3, 0.4, 0.5]) is None


@pytest.mark.conforms("C13")
def test_what_changes(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpch, "DATA", tmp_path)
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        for table in ("orders", "lineitem"):
            rows = spark.read.parquet(str(tpch.table(table, SCALE)))
            columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema.fields)
            warehouse.sql(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({KEYS[table]}))")
            with warehouse.transaction() as tx:
                tx.insert(table, rows)
        orders, first = Orders(warehouse, SCALE), count(warehouse, "orders")

        def changed(kind: Kind, *, skewed: bool = False, times: int = 1) -> tuple[float, float]:
            """How many orders came and went for good, and how many are others, in shares of the first."""
            before = warehouse.session()
            orders.change(0.2, kind, skewed=skewed, times=times)
            then = before.sql("SELECT * FROM orders")
            now = warehouse.sql("SELECT * FROM orders")
            went, came = then.exceptAll(now).count(), now.exceptAll(then).count()
            before.close()
            assert count(warehouse, "lineitem", "l_orderkey NOT IN (SELECT o_orderkey FROM orders)") == 0
            return went / first, came / first

        assert changed("inserts") == (0, pytest.approx(0.2, abs=0.05))
        assert changed("updates") == (pytest.approx(0.24, abs=0.06), pytest.approx(0.24, abs=0.06))
        went, came = changed("mixed", times=2)
        assert 0.1 < went < 0.26 and 0.1 < came < 0.26
        assert changed("deletes") == (pytest.approx(0.24, abs=0.06), 0)
        before = count(warehouse, "orders", f"o_orderkey < 100000000 AND {HOT}")
        cold = count(warehouse, "orders", f"o_orderkey < 100000000 AND NOT {HOT}")
        changed("deletes", skewed=True)
        assert count(warehouse, "orders", f"o_orderkey < 100000000 AND {HOT}") / before < 0.4
        assert count(warehouse, "orders", f"o_orderkey < 100000000 AND NOT {HOT}") / cold > 0.9


def count(warehouse: matview.Warehouse, table: str, where: str = "TRUE") -> int:
    (row,) = warehouse.sql(f"SELECT count(*) FROM {table} WHERE {where}").collect()  # type: ignore[union-attr]
    return int(row[0])
