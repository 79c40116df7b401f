"""What nobody can see any more is asked nothing: neither by queries, nor by UPDATE, DELETE and MERGE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview
from matview.storage import few as few_rows


@pytest.fixture(params=[-1, 5000], ids=["Spark", "driver"])
def warehouse(
    request: pytest.FixtureRequest, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[matview.Warehouse]:
    monkeypatch.setattr(few_rows, "FEW_ROWS", request.param)
    with matview.open(tmp_path / "wh", versions=2, spark=spark) as opened:
        opened.sql("CREATE TABLE d (id INT PRIMARY KEY, s STRING, v INT)")
        opened.sql("INSERT INTO d VALUES (1, 'x', 0), (2, '20', 5)")
        opened.sql("UPDATE d SET s = '3', v = 2 WHERE id = 1")
        opened.sql("CREATE TABLE bag (s STRING)")
        opened.sql("INSERT INTO bag VALUES ('x'), ('7'), ('7')")
        opened.sql("DELETE FROM bag WHERE s = 'x'")
        yield opened


QUERIES = {
    "SELECT id FROM d WHERE CAST(s AS INT) > 1": [1, 2],
    "SELECT id FROM d WHERE id = 1 AND CAST(s AS INT) > 1": [1],
    "SELECT id FROM d WHERE 10 / v > 3": [1],
    "SELECT a.id FROM d a JOIN d b ON CAST(a.s AS INT) = CAST(b.s AS INT) AND 10 / a.v > 1": [1, 2],
    "SELECT id FROM d WHERE EXISTS (SELECT 1 FROM bag WHERE CAST(bag.s AS INT) > CAST(d.s AS INT))": [1],
    "SELECT max(id) FROM d GROUP BY 10 / v HAVING 10 / v > 3": [1],
    "SELECT CAST(s AS INT) FROM bag WHERE CAST(s AS INT) > 1": [7, 7],
}


@pytest.mark.parametrize("query", QUERIES)
def test_no_query_fails_of_what_is_hidden(query: str, warehouse: matview.Warehouse) -> None:
    assert sorted(row[0] for row in warehouse.sql(query).collect()) == QUERIES[query]


def test_no_change_fails_of_what_is_hidden(warehouse: matview.Warehouse) -> None:
    warehouse.sql("DELETE FROM d WHERE CAST(s AS INT) = 100")
    warehouse.sql("UPDATE d SET s = CAST(CAST(s AS INT) + 1 AS STRING) WHERE 10 / v > 1 AND id < 9")
    warehouse.sql("UPDATE d SET id = id + 10 WHERE CAST(s AS INT) = 21")
    warehouse.sql("UPDATE bag SET s = '8' WHERE CAST(s AS INT) = 7")
    warehouse.sql(
        "MERGE INTO d USING (SELECT 4 AS k) AS n ON CAST(d.s AS INT) = n.k AND 10 / d.v > 1 "
        "WHEN MATCHED THEN UPDATE SET v = 50"
    )
    assert sorted(map(tuple, warehouse.sql("SELECT * FROM d").collect())) == [(1, "4", 50), (12, "21", 5)]
    assert sorted(map(tuple, warehouse.sql("SELECT * FROM bag").collect())) == [("8",), ("8",)]


@pytest.mark.conforms("Q11")
@pytest.mark.parametrize("condition", ["v = 1", "v + 0 = 1", "v IN (1)", "CAST(v AS STRING) = '1'"])
def test_an_expired_tuple_is_met_whatever_is_asked_of_it(condition: str, warehouse: matview.Warehouse) -> None:
    warehouse.sql("CREATE TABLE e (id INT PRIMARY KEY, v INT)")
    warehouse.sql("INSERT INTO e VALUES (1, 1), (2, 2)")
    session = warehouse.session(grain="tuple")
    warehouse.sql("UPDATE e SET v = v + 10 WHERE id = 1")
    assert [row.id for row in session.sql(f"SELECT id FROM e WHERE {condition}").collect()] == [1]
    warehouse.sql("UPDATE e SET v = v + 10 WHERE id = 1")
    with pytest.raises(Exception, match="MV301"):
        session.sql(f"SELECT id FROM e WHERE {condition}").collect()
    assert [row.id for row in session.sql("SELECT id FROM e WHERE id = 2").collect()] == [2]
