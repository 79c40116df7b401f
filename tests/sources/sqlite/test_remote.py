"""Subqueries at a SQLite file: answered as Spark would answer them, or not at all."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.sources.contract import asked, captured_from_here
from tests.sources.sqlite.lab import SqliteLab

from matview.errors import SourceDrifted, UnsupportedStatement
from matview.sources import Source
from matview.sources.engine import SourceTable


@pytest.fixture
def tables(lab: SqliteLab, source: Source) -> list[SourceTable]:
    lab.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, at DATETIME, on_day DATE, "
        "price DECIMAL(9,2), sure BOOLEAN)",
        "CREATE INDEX names ON t (name)",
        "INSERT INTO t VALUES (1, 'a', '2024-01-01T00:00', '2024-01-01', 0.30, 1)",
        "INSERT INTO t VALUES (2, 'A', '2024-01-01 00:00:00.000', '2024-01-02', 3, 0)",
    )
    return captured_from_here(source, "t")


ANSWERS = {
    "SELECT id FROM t WHERE name = 'a'": [(1,)],
    "SELECT id FROM t WHERE name IN ('A', 'b')": [(2,)],
    "SELECT DISTINCT at FROM t": [(datetime(2024, 1, 1),)],
    "SELECT id FROM t WHERE at = TIMESTAMP_NTZ '2024-01-01 00:00:00'": [(1,), (2,)],
    "SELECT id FROM t WHERE on_day > DATE '2024-01-01'": [(2,)],
    "SELECT id FROM t WHERE price = 0.3": [(1,)],
    "SELECT id, price FROM t WHERE sure": [(1, Decimal("0.30"))],
    "SELECT id FROM t WHERE sure = FALSE": [(2,)],
    "SELECT id + 1 AS n, -id AS m, id > 1 AS big FROM t WHERE NOT name <=> 'a'": [(3, -2, True)],
    "SELECT a.id, b.id AS other FROM t AS a LEFT JOIN t AS b ON a.name = b.name AND a.id < b.id": [
        (1, None),
        (2, None),
    ],
    "WITH u AS (SELECT id FROM t WHERE id = 2) SELECT * FROM u": [(2,)],
    "SELECT CAST(NULL AS DECIMAL(3,1)) AS n, CAST(id AS BIGINT) AS id FROM t WHERE id BETWEEN 2 AND 9": [(None, 2)],
    "SELECT id FROM t WHERE id = 1 UNION ALL SELECT id FROM t WHERE id = 1": [(1,), (1,)],
}


@pytest.mark.conforms("M5")
@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.parametrize("query", ANSWERS)
def test_answers(lab: SqliteLab, source: Source, tables: list[SourceTable], query: str, touched: bool) -> None:
    """The same from the table alone and with rows to be undone."""
    taken = source.capture(tables).taken
    if touched:
        lab.execute(
            "UPDATE t SET name = 'b', at = NULL WHERE id = 1", "INSERT INTO t VALUES (3, 'a', NULL, NULL, 0.3, 1)"
        )
    assert asked(source, query, tables, taken) == Counter(ANSWERS[query])


REFUSED = (
    "SELECT upper(name) FROM t",
    "SELECT id FROM t WHERE name LIKE 'a%'",
    "SELECT id / 2 FROM t",
    "SELECT id % 2 FROM t",
    "SELECT price + price FROM t",
    "SELECT price * 2 FROM t",
    "SELECT id FROM t WHERE name = 1",
    "SELECT id FROM t WHERE at > on_day",
    "SELECT CAST(price AS INT) FROM t",
    "SELECT CAST(name AS DATE) FROM t",
    "SELECT count(*) FROM t",
    "SELECT name, max(id) FROM t GROUP BY name",
    "SELECT id FROM t ORDER BY id LIMIT 1",
    "SELECT name || 'x' FROM t",
    "SELECT NULL AS n FROM t",
    "SELECT a.id FROM t AS a FULL OUTER JOIN t AS b ON a.id = b.id",
    "SELECT nowhere FROM t",
    "SELECT id FROM t WHERE id IN (SELECT id FROM t)",
    "SELECT CASE WHEN id = 1 THEN 2 END FROM t",
)


@pytest.mark.parametrize("query", REFUSED)
def test_what_sqlite_would_answer_otherwise_is_refused(source: Source, tables: list[SourceTable], query: str) -> None:
    with pytest.raises(UnsupportedStatement):
        asked(source, query, tables, source.capture(tables).taken)


def test_every_type_is_shipped_and_comes_back(source: Source, tables: list[SourceTable]) -> None:
    relation = pa.table(
        {
            "n": pa.array([1, None], pa.int16()),
            "f": pa.array([0.5, float("inf")], pa.float32()),
            "d": pa.array([0.1, None], pa.float64()),
            "p": pa.array([Decimal("0.30"), Decimal("-12.00")], pa.decimal128(20, 2)),
            "s": pa.array(["Ø", "\0"]),
            "y": pa.array([b"\xff", None]),
            "b": pa.array([True, False]),
            "on_day": pa.array([date(2024, 1, 1), None]),
            "at": pa.array([datetime(2024, 1, 1), None], pa.timestamp("us")),
            "z": pa.array([datetime(2024, 1, 1, 3, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        }
    )
    taken = source.capture(tables).taken
    assert asked(source, "SELECT * FROM r", tables, taken, {"r": relation}) == Counter(
        tuple(row.values()) for row in relation.to_pylist()
    )
    joined = "SELECT t.id FROM t JOIN r ON t.at = r.at AND t.on_day = r.on_day AND t.price = r.p AND t.sure = r.b"
    assert asked(source, joined, tables, taken, {"r": relation}) == Counter([(1,)])


def test_rows_numbered_anew_in_the_middle_of_a_round(lab: SqliteLab, source: Source) -> None:
    lab.execute("CREATE TABLE h (v INTEGER)", "INSERT INTO h VALUES (1), (2), (3)")
    tables = captured_from_here(source, "h")
    taken = source.capture(tables).taken
    lab.execute("INSERT INTO h VALUES (4)", "DELETE FROM h WHERE v = 1", "VACUUM")
    with pytest.raises(SourceDrifted, match="VACUUM"):
        asked(source, "SELECT v FROM h", tables, taken)
    taken = source.capture(tables).taken
    assert asked(source, "SELECT v FROM h", tables, taken) == Counter([(2,), (3,), (4,)])
