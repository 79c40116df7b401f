"""The examples of Quass and Widom, on real tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import matview

KEY = "city STRING, state STRING, product_line STRING, date STRING"
CREATE = f"CREATE TABLE DailySales ({KEY}, total_sales INT, PRIMARY KEY (city, state, product_line, date))"
GOLF_14 = ("San Jose", "CA", "golf equip", "10/14/96")
GOLF_15 = ("San Jose", "CA", "golf equip", "10/15/96")
GOLF_16 = ("San Jose", "CA", "golf equip", "10/16/96")
RACQUETBALL = ("Berkeley", "CA", "racquetball", "10/14/96")
ROLLERBLADES = ("Novato", "CA", "rollerblades", "10/13/96")

FIGURE_4 = {
    (3, "insert", *GOLF_14, 10_000, None),
    (4, "insert", *GOLF_15, 1_500, None),
    (4, "update", *RACQUETBALL, 12_000, 10_000),
    (4, "delete", *ROLLERBLADES, 8_000, 8_000),
}
FIGURE_6 = {
    (5, "update", *GOLF_14, 10_200, 10_000),
    (4, "insert", *GOLF_15, 1_500, None),
    (5, "delete", *RACQUETBALL, 12_000, 12_000),
    (5, "insert", *ROLLERBLADES, 6_000, None),
    (5, "insert", *GOLF_16, 11_000, None),
}


def values(*rows: tuple[object, ...]) -> str:
    return ", ".join("(" + ", ".join(repr(v) for v in row) + ")" for row in rows)


@pytest.fixture
def sales(spark: Any, tmp_path: Path) -> Any:
    """DailySales as Figure 4 has it: version 3 inserted three tuples, version 4 changed them."""
    with matview.open(tmp_path / "wh", versions=2, spark=spark) as warehouse:
        warehouse.sql(CREATE)
        first = values((*GOLF_14, 10_000), (*RACQUETBALL, 10_000), (*ROLLERBLADES, 8_000))
        warehouse.sql(f"INSERT INTO DailySales VALUES {first}")
        warehouse.early = warehouse.session()
        with warehouse.transaction() as tx:
            tx.sql(f"INSERT INTO DailySales VALUES {values((*GOLF_15, 1_500))}")
            tx.sql("UPDATE DailySales SET total_sales = 12000 WHERE city = 'Berkeley'")
            tx.sql("DELETE FROM DailySales WHERE city = 'Novato'")
        yield warehouse


def rows(frame: Any) -> set[tuple[object, ...]]:
    found = [tuple(row) for row in frame.collect()]
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.conforms("Q2", "Q8")
def test_figure_4_and_example_3_2(sales: Any) -> None:
    assert rows(sales.versions("DailySales")) == FIGURE_4
    read = rows(sales.early.sql("SELECT * FROM DailySales"))
    assert read == {(*GOLF_14, 10_000), (*RACQUETBALL, 10_000), (*ROLLERBLADES, 8_000)}


@pytest.mark.conforms("Q4", "Q5", "Q6", "Q8")
def test_example_3_3_gives_figure_6(sales: Any) -> None:
    with sales.transaction() as tx:  # Figure 5
        tx.sql(f"INSERT INTO DailySales VALUES {values((*GOLF_16, 11_000), (*ROLLERBLADES, 6_000))}")
        tx.sql("UPDATE DailySales SET total_sales = 10200 WHERE city = 'San Jose' AND date = '10/14/96'")
        tx.sql("DELETE FROM DailySales WHERE city = 'Berkeley'")
    assert rows(sales.versions("DailySales")) == FIGURE_6


@pytest.mark.conforms("Q9")
def test_example_4_1_reads_one_version_across_queries(sales: Any) -> None:
    by_city = "SELECT city, state, SUM(total_sales) AS total FROM DailySales GROUP BY city, state"
    assert rows(sales.early.sql(by_city)) == {
        ("San Jose", "CA", 10_000),
        ("Berkeley", "CA", 10_000),
        ("Novato", "CA", 8_000),
    }
    text = sales.early.text(by_city, "duckdb")
    assert "CASE WHEN" in text
    assert "__pre1_total_sales" in text


@pytest.mark.conforms("Q10")
def test_examples_4_2_to_4_4_as_statements(sales: Any) -> None:
    with sales.transaction() as tx:
        tx.sql(f"INSERT INTO DailySales VALUES {values((*ROLLERBLADES, 1))}")  # 4.2, line 1: revived
        tx.sql("DELETE FROM DailySales WHERE city = 'Berkeley'")
        tx.sql(f"INSERT INTO DailySales VALUES {values((*RACQUETBALL, 7))}")  # 4.2, line 2: an update, net
        tx.sql("UPDATE DailySales SET total_sales = total_sales + 1000 WHERE city = 'San Jose' AND date = '10/14/96'")
        tx.sql("UPDATE DailySales SET total_sales = total_sales + 1000 WHERE city = 'San Jose' AND date = '10/14/96'")
        tx.sql("DELETE FROM DailySales WHERE city = 'Novato'")  # 4.4, line 2: the tuple goes back to what it was
    assert rows(sales.versions("DailySales")) == {
        (5, "update", *GOLF_14, 12_000, 10_000),
        (4, "insert", *GOLF_15, 1_500, None),
        (5, "update", *RACQUETBALL, 7, 12_000),
        (4, "delete", *ROLLERBLADES, 8_000, 8_000),
    }


@pytest.mark.conforms("Q12")
def test_example_5_1_gives_figure_7(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", versions=4, spark=spark) as warehouse:
        warehouse.sql(CREATE)
        sessions = {2: warehouse.session()}
        warehouse.sql(f"INSERT INTO DailySales VALUES {values((*GOLF_14, 10_000))}")
        sessions[3] = warehouse.session()
        warehouse.sql("CREATE TABLE other (x INT)")
        sessions[4] = warehouse.session()
        warehouse.sql("UPDATE DailySales SET total_sales = 10200")
        sessions[5] = warehouse.session()
        warehouse.sql("DELETE FROM DailySales")
        sessions[6] = warehouse.session()
        assert [(version, session.version) for version, session in sessions.items()] == [(v, v) for v in sessions]
        columns = [f"{name}_{i}" for i in (1, 2, 3) for name in ("tuple_vn", "operation", "pre_total_sales")]
        extended = warehouse.versions("DailySales").select("total_sales", *columns)
        assert rows(extended) == {(10_200, 6, "delete", 10_200, 5, "update", 10_000, 3, "insert", None)}
        seen = {v: {r["total_sales"] for r in s.sql("SELECT * FROM DailySales").collect()} for v, s in sessions.items()}
        assert seen == {2: set(), 3: {10_000}, 4: {10_000}, 5: {10_200}, 6: set()}
