"""Clauses of statements, as Spark runs them: those that are refused change nothing, the others mean what they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview
from matview.errors import MatviewError, UnsupportedStatement
from sql.too_much import TOO_MUCH


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", versions=3, spark=spark) as opened:
        opened.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        opened.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
        yield opened


def rows(warehouse: Any, text: str = "SELECT * FROM t") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in warehouse.sql(text).collect())


def test_what_is_refused_changes_nothing(warehouse: matview.Warehouse) -> None:
    before, version = rows(warehouse), warehouse.catalog.version().current_vn
    for text in (text for texts in TOO_MUCH.values() for text in texts):
        with pytest.raises(MatviewError):
            warehouse.sql(text)
    assert rows(warehouse) == before
    assert (warehouse.catalog.version().current_vn, len(warehouse.tables())) == (version, 1)


def test_insert_by_name(warehouse: matview.Warehouse) -> None:
    warehouse.sql("INSERT INTO t BY NAME SELECT 40 AS v, 4 AS id")
    warehouse.sql("INSERT INTO t BY NAME SELECT id + 4 AS id FROM t WHERE id = 1")
    assert rows(warehouse)[3:] == [(4, 40), (5, None)]


def test_a_with_before_any_change(warehouse: matview.Warehouse) -> None:
    warehouse.sql("WITH c AS (SELECT 4 AS id) INSERT INTO t WITH d AS (SELECT id, 40 FROM c) SELECT * FROM d")
    warehouse.sql("WITH c AS (SELECT 9 AS x) UPDATE t SET v = (SELECT x FROM c) WHERE id = (SELECT x FROM c) - 8")
    warehouse.sql("WITH c AS (SELECT id FROM t WHERE v = 20) DELETE FROM t WHERE id IN (SELECT id FROM c)")
    warehouse.sql("""
        WITH s AS (SELECT id, v + 1 AS w FROM t WHERE id > 2)
        MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = (SELECT max(w) FROM s)
    """)
    assert rows(warehouse) == [(1, 9), (3, 41), (4, 41)]


def test_a_with_inside_a_change(warehouse: matview.Warehouse) -> None:
    warehouse.sql("UPDATE t SET v = (WITH c AS (SELECT 5 AS x) SELECT x FROM c) WHERE id = 1")
    warehouse.sql(
        "MERGE INTO t USING (WITH c AS (SELECT 2 AS id) SELECT * FROM c) AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    assert rows(warehouse) == [(1, 5), (3, 30)]


def test_an_earlier_version_is_for_a_session(warehouse: matview.Warehouse) -> None:
    session = warehouse.session()
    for text in (
        "SELECT * FROM t VERSION AS OF 1",
        "SELECT * FROM t@v1",
        "INSERT INTO t SELECT * FROM t VERSION AS OF 1",
    ):
        for reader in (warehouse, session):
            with pytest.raises(UnsupportedStatement):
                reader.sql(text)


def test_a_sample_is_of_the_version_that_is_read(warehouse: matview.Warehouse) -> None:
    session = warehouse.session()
    warehouse.sql("DELETE FROM t WHERE id < 3")
    assert rows(warehouse, "SELECT * FROM t TABLESAMPLE (100 PERCENT)") == [(3, 30)]
    assert len(rows(session, "SELECT s.id FROM t TABLESAMPLE (2 ROWS) AS s WHERE s.id > 0")) == 2
    assert len(rows(session, "SELECT * FROM t TABLESAMPLE (100 PERCENT) REPEATABLE (1)")) == 3
