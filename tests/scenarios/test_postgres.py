"""PostgreSQL, twice: as the catalog of a warehouse, and as an engine that runs the rewritten text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

import matview
from matview.errors import ForeignDirectory, MaintenanceBusy
from matview.storage.snapshot import Level

ELSEWHERE = """
import sys, matview
with matview.open(sys.argv[1], catalog=sys.argv[2]) as warehouse:
    warehouse.sql("INSERT INTO sales VALUES (3, 'Rome', 30)")
    warehouse.refresh("by_city")
"""
ARROW_TYPES = {pa.int64(): "bigint", pa.int32(): "int", pa.int8(): "int", pa.string(): "text"}


def rows(reader: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in reader.sql(text).collect())


def test_a_warehouse_with_its_catalog_in_postgresql(spark: Any, tmp_path: Path, postgres_url: str) -> None:
    """Two processes, a session across a maintenance transaction, a view, a refusal while another maintains."""
    place = tmp_path / "wh"
    with matview.open(place, spark=spark, catalog=postgres_url) as warehouse:
        warehouse.sql("CREATE TABLE sales (id INT PRIMARY KEY, city STRING, amount INT)")
        warehouse.sql("INSERT INTO sales VALUES (1, 'Oslo', 10), (2, 'Oslo', 20)")
        warehouse.sql("CREATE MATERIALIZED VIEW by_city AS SELECT city, sum(amount) AS total FROM sales GROUP BY city")
        with warehouse.session() as session:
            subprocess.run([sys.executable, "-c", ELSEWHERE, str(place), postgres_url], check=True, timeout=120)
            assert rows(session, "SELECT * FROM by_city") == [("Oslo", 30)]
            assert rows(session, "SELECT sum(amount) FROM sales") == [(30,)]
        assert rows(warehouse, "SELECT * FROM by_city") == [("Oslo", 30), ("Rome", 30)]
        with warehouse.transaction() as tx:
            tx.sql("DELETE FROM sales WHERE id = 1")
            with pytest.raises(MaintenanceBusy):
                warehouse.transaction(wait=0.0)
        warehouse.refresh("by_city")
        assert warehouse.diff("by_city").collect() == []
        assert warehouse.gc() is not None
    assert not list(place.glob("*.sqlite"))
    with pytest.raises(ForeignDirectory):
        matview.open(tmp_path / "other", spark=spark, catalog=postgres_url)


QUERIES = [
    "SELECT id, city, amount FROM sales ORDER BY id",
    "SELECT city, sum(amount) AS total, count(*) AS n FROM sales GROUP BY city ORDER BY city",
    "SELECT s.id FROM sales s WHERE s.amount > 10 AND EXISTS (SELECT 1 FROM visits v WHERE v.city = s.city) ORDER BY 1",
    "WITH o AS (SELECT * FROM visits) SELECT city, count(*) AS n FROM o GROUP BY city HAVING count(*) > 1 ORDER BY 1",
]


@pytest.mark.conforms("Q9")
def test_postgresql_runs_the_rewritten_text(spark: Any, tmp_path: Path, postgres_url: str) -> None:
    """Stored tuples are copied as they are; what a session sees of them, the text alone decides."""
    with (
        matview.open(tmp_path / "wh", versions=3, spark=spark) as warehouse,
        psycopg.connect(postgres_url.replace("+psycopg", "")) as server,
    ):
        warehouse.sql("CREATE TABLE sales (id INT PRIMARY KEY, city STRING, amount INT)")
        warehouse.sql("CREATE TABLE visits (city STRING)")
        warehouse.sql("INSERT INTO sales VALUES (1, 'Oslo', 10), (2, 'Rome', 20), (3, NULL, 30)")
        warehouse.sql("INSERT INTO visits VALUES ('Oslo'), ('Oslo'), ('Rome')")
        before = warehouse.session()
        with warehouse.transaction() as tx:
            tx.sql("UPDATE sales SET amount = amount + 5 WHERE id <> 3")
            tx.sql("DELETE FROM sales WHERE id = 3")
            tx.sql("INSERT INTO visits VALUES ('Rome'), ('Bari')")
        for table in ("sales", "visits"):
            copy_tuples(warehouse, table, server)
        with before, warehouse.session() as now:
            for query in QUERIES:
                answers = []
                for session in (before, now):
                    found = server.execute(session.text(query, "postgres")).fetchall()
                    assert found == [tuple(row) for row in session.sql(query).collect()], query
                    answers.append(found)
                assert answers[0] != answers[1], "else it shows little"


def copy_tuples(warehouse: matview.Warehouse, name: str, server: psycopg.Connection) -> None:
    """`<table>__base` and `<table>__overlay`, with the stored columns."""
    runtime = warehouse.runtime
    table = runtime.tables.table(warehouse.table(name), runtime.catalog.version().versions)
    snapshot = table.log.load()
    for level in Level:
        tuples = table.few([f for f in snapshot.files if f.level is level])
        assert tuples is not None
        relation = sql.Identifier(f"{name}__{level.value}")
        columns = [sql.SQL("{} " + ARROW_TYPES[f.type]).format(sql.Identifier(f.name)) for f in tuples.schema]
        server.execute(sql.SQL("CREATE TABLE {} ({})").format(relation, sql.SQL(", ").join(columns)))
        marks = sql.SQL(", ").join([sql.Placeholder()] * tuples.num_columns)
        with server.cursor() as cursor:
            rows = [tuple(row.values()) for row in tuples.to_pylist()]
            cursor.executemany(sql.SQL("INSERT INTO {} VALUES ({})").format(relation, marks), rows)
