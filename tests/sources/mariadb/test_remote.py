"""Subqueries at a MariaDB server: answered as Spark would answer them, or not at all."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.sources.contract import asked, captured_from_here
from tests.sources.mariadb.lab import MariadbLab

from matview.errors import TypeNotCarried, UnsupportedStatement
from matview.sources import Source
from matview.sources.engine import SourceTable


@pytest.fixture
def tables(lab: MariadbLab, source: Source) -> list[SourceTable]:
    lab.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_general_ci, at DATETIME(6), "
        "price DECIMAL(9,2), big BIGINT UNSIGNED, part FLOAT)",
        "CREATE INDEX names ON t (name)",
        "INSERT INTO t VALUES (1, 'a', '2024-01-01', 0.30, 18446744073709551615, 1.1)",
        "INSERT INTO t VALUES (2, 'A', '2024-01-02 00:00:00.000001', 3, 1, 0.5), (3, 'a ', NULL, NULL, NULL, NULL)",
        r"INSERT INTO t VALUES (4, 'it''s \\n', NULL, NULL, NULL, NULL)",
    )
    return captured_from_here(source, "t")


ANSWERS = {
    "SELECT id FROM t WHERE name = 'a'": [(1,)],
    "SELECT id FROM t WHERE 'a' = 'A'": [],
    "SELECT id FROM t WHERE name IN ('A', 'b')": [(2,)],
    "SELECT DISTINCT name FROM t WHERE id < 4": [("a",), ("A",), ("a ",)],
    r"SELECT id FROM t WHERE name = 'it\'s \\n'": [(4,)],
    "SELECT id FROM t WHERE at > TIMESTAMP_NTZ '2024-01-02 00:00:00'": [(2,)],
    "SELECT id, big FROM t WHERE price = 0.3": [(1, Decimal(2**64 - 1))],
    "SELECT id + 1 AS n, id > 1 AS more FROM t WHERE NOT name <=> 'a' AND big = 1": [(3, True)],
    "SELECT a.id, b.id AS id FROM t AS a JOIN t AS b ON a.name = b.name AND a.id < 2": [(1, 1)],
    "SELECT part, CAST(NULL AS DATE) AS d FROM t WHERE part > 1": [(1.100000023841858, None)],
}


@pytest.mark.conforms("M5")
@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.parametrize("query", ANSWERS)
def test_answers(lab: MariadbLab, source: Source, tables: list[SourceTable], query: str, touched: bool) -> None:
    """The same from the table alone and with rows to be undone."""
    taken = source.capture(tables).taken
    if touched:
        lab.execute("UPDATE t SET name = 'b', big = 1", "INSERT INTO t (id, name) VALUES (9, 'a')")
    answer = source_answer(source, query, tables, taken)
    assert answer == Counter(ANSWERS[query])


def source_answer(source: Source, query: str, tables: list[SourceTable], taken: object) -> Counter[tuple[object, ...]]:
    """Rows by position: two columns of an answer may have one name."""
    import sqlglot

    batches = source.evaluate(sqlglot.parse_one(query, dialect="spark"), tables, taken, {})  # type: ignore[arg-type]
    return Counter(row for b in batches for row in zip(*(c.to_pylist() for c in b.columns), strict=True))


@pytest.mark.parametrize("query", ["SELECT upper(name) FROM t", "SELECT price * 2 FROM t", "SELECT id / 2 FROM t"])
def test_what_mariadb_would_answer_otherwise_is_refused(source: Source, tables: list[SourceTable], query: str) -> None:
    with pytest.raises(UnsupportedStatement):
        asked(source, query, tables, source.capture(tables).taken)


def test_texts_that_mariadb_calls_equal_are_kept_apart(lab: MariadbLab, source: Source) -> None:
    lab.execute("CREATE TABLE h (v VARCHAR(9), f FLOAT)", "INSERT INTO h VALUES ('a', 1.1), ('A', 1.1), ('a ', 1.1)")
    tables = captured_from_here(source, "h")
    taken = source.capture(tables).taken
    lab.execute("DELETE FROM h WHERE BINARY v = 'A'", "INSERT INTO h VALUES ('a', 1.10001), ('a', 1.1000001)")
    lab.execute("DELETE FROM h WHERE BINARY v = 'a' AND f = CAST(1.10001 AS FLOAT)")
    assert asked(source, "SELECT v FROM h", tables, taken) == Counter([("a",), ("A",), ("a ",)])


def test_every_type_is_shipped_and_comes_back(source: Source, tables: list[SourceTable]) -> None:
    relation = pa.table(
        {
            "n": pa.array([1, None], pa.int16()),
            "f": pa.array([0.5, None], pa.float32()),
            "d": pa.array([0.1, None], pa.float64()),
            "p": pa.array([Decimal("0.30"), Decimal("-12.00")], pa.decimal128(38, 2)),
            "s": pa.array(["Ø \\ ' %s", ""]),
            "y": pa.array([b"\xff'\\", None]),
            "b": pa.array([True, False]),
            "on_day": pa.array([date(2024, 1, 1), None]),
            "at": pa.array([datetime(2024, 1, 1, 0, 0, 0, 1), None], pa.timestamp("us")),
            "z": pa.array([datetime(2024, 1, 1, 3, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        }
    )
    taken = source.capture(tables).taken
    assert asked(source, "SELECT * FROM r", tables, taken, {"r": relation}) == Counter(
        tuple(row.values()) for row in relation.to_pylist()
    )
    joined = "SELECT t.id FROM t JOIN r ON t.price = r.p AND t.id = r.n JOIN r AS again ON again.n = t.id"
    assert asked(source, joined, tables, taken, {"r": relation}) == Counter([(1,)])


def test_a_value_that_mariadb_does_not_have(source: Source, tables: list[SourceTable]) -> None:
    relation = pa.table({"d": pa.array([float("inf")])})
    with pytest.raises(TypeNotCarried, match="inf"):
        asked(source, "SELECT d FROM r", tables, source.capture(tables).taken, {"r": relation})
