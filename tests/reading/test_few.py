"""Few tuples that the constants of a query lead to: no Spark job, and the rows of the session's version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counting import jobs

import matview
from matview.storage import few as few_rows
from matview.storage import query

ROWS = 300


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", versions=3, spark=spark) as opened:
        opened.sql("CREATE TABLE t (id INT, name STRING, v DECIMAL(9,2), at DATE, PRIMARY KEY (id))")
        opened.sql(
            "INSERT INTO t SELECT id, CONCAT('n', id % 7), id / 10, DATE_ADD(DATE'2026-01-01', id % 30) "
            f"FROM (SELECT CAST(id AS INT) AS id FROM range({ROWS}))"
        )
        opened.sql("CREATE TABLE bag (x INT, y STRING)")
        opened.sql("INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (2, 'b'), (NULL, 'c')")
        yield opened


def found(reader: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in reader.sql(text).collect()), key=repr)


LED = {
    "SELECT id, name AS called, v FROM t WHERE id = 20": 1,
    "SELECT * FROM t WHERE id IN (1, 2, 2, 999)": 2,
    "SELECT id FROM t WHERE name = 'n3' AND id < 100": 14,
    "SELECT id FROM t WHERE at = DATE'2026-01-05'": 10,
    "SELECT a.id FROM t a JOIN (SELECT id FROM t WHERE 7 = id) b ON a.id = b.id WHERE a.id IN (6, 7)": 1,
    "SELECT x, y FROM bag WHERE x = 1": 2,
    "SELECT id FROM t WHERE id = -1": 0,
    "SELECT id FROM t WHERE id = 99999999999": 0,
}


def test_as_spark_finds_them(warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, count in LED.items():
        with monkeypatch.context() as patch:
            here = warehouse.sql(text)
            patch.setattr(few_rows, "FEW_ROWS", -1)
            there = warehouse.sql(text)
        assert not isinstance(here, matview.Outcome) and not isinstance(there, matview.Outcome)
        assert here.schema == there.schema, text
        rows = sorted(map(tuple, here.collect()))
        assert rows == sorted(map(tuple, there.collect())), text
        assert len(rows) == count, text


FAILING = [
    "SELECT id FROM (SELECT id, 10 / v AS x FROM t WHERE id IN (0, 1)) q",
    "SELECT id FROM (SELECT id, 10 / v AS x, v FROM t WHERE id IN (0, 1)) q WHERE v <> 0",
    "SELECT COUNT(*) FROM (SELECT CAST(name AS INT) AS n FROM t WHERE id = 1)",
    "SELECT id FROM (SELECT id, name = 5 AS five FROM t WHERE id = 1)",
    "SELECT id FROM (SELECT id, CASE name WHEN 5 THEN 1 END AS five FROM t WHERE id = 1)",
    "SELECT id FROM (SELECT id, CAST('x' AS INT) AS x FROM t WHERE id = 1)",
    "WITH c AS (SELECT id, 10 / v AS x FROM t WHERE id IN (0, 1)) SELECT a.id FROM c a JOIN c b ON a.id = b.id",
]


def test_what_nobody_asks_for_does_not_fail(warehouse: matview.Warehouse) -> None:
    for text in FAILING:
        assert found(warehouse, text), text
    begun = warehouse.sql("SELECT id, 10 / v AS x, v FROM t WHERE id IN (0, 1)")
    assert not isinstance(begun, matview.Outcome)
    assert begun.count() == 2 and begun.where("v <> 0").count() == 1


def test_without_a_job(warehouse: matview.Warehouse) -> None:
    warehouse.sql("UPDATE t SET v = 0 WHERE id = 20")
    assert jobs(warehouse, lambda: found(warehouse, "SELECT * FROM t WHERE id IN (20, 21)")) == 0
    assert jobs(warehouse, lambda: found(warehouse, "SELECT * FROM t WHERE id > 290")) > 0


@pytest.mark.parametrize("grain", ["tuple", "table", "global"])
def test_a_session_reads_what_was_there(grain: Any, warehouse: matview.Warehouse) -> None:
    with warehouse.session(grain=grain) as session:
        warehouse.sql("UPDATE t SET name = 'other', v = -1 WHERE id IN (3, 4)")
        warehouse.sql("DELETE FROM t WHERE id = 4")
        assert [row[1:3] for row in found(session, "SELECT id, name, CAST(v AS DOUBLE) FROM t WHERE id IN (3, 4)")] == [
            ("n3", 0.3),
            ("n4", 0.4),
        ]
        assert (3,) in found(session, "SELECT id FROM t WHERE name = 'n3'")
        assert found(session, "SELECT id FROM t WHERE name = 'other'") == []
        assert jobs(warehouse, lambda: found(session, "SELECT * FROM t WHERE id = 3")) == 0
    assert found(warehouse, "SELECT id FROM t WHERE name = 'other'") == [(3,)]


def test_many_are_for_spark(warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MOST_ASKED", 40)
    assert jobs(warehouse, lambda: found(warehouse, "SELECT id FROM t WHERE name = 'n3'")) > 0
    monkeypatch.setattr(query, "MOST_ASKED", 1000)
    monkeypatch.setattr(query, "MOST_LOOKED_AT", ROWS)
    assert len(found(warehouse, "SELECT id FROM t WHERE name = 'n3'")) == 43


def test_a_plan_stays_right(warehouse: matview.Warehouse) -> None:
    before = warehouse.sql("SELECT name FROM t WHERE id = 5")
    assert not isinstance(before, matview.Outcome)
    warehouse.sql("DELETE FROM t WHERE id < 100")
    warehouse.gc()
    assert [row.name for row in before.collect()] == ["n5"]
