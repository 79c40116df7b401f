"""`matview sql --print`: any engine reads the files, at any version that can be told."""

from __future__ import annotations

import csv
import io

import duckdb
import pytest

from .conftest import Run, Shop

pytestmark = pytest.mark.usefixtures("spark")

QUERIES = {
    "all": "SELECT * FROM sales ORDER BY id",
    "groups": "SELECT city, sum(amount) AS total, count(*) AS n FROM sales GROUP BY city ORDER BY city NULLS FIRST",
    "bag": "SELECT city, day FROM visits ORDER BY city, day",
    "predicate": "SELECT id FROM sales WHERE amount > 3 ORDER BY id",
    "join": "SELECT s.id, v.day FROM sales s JOIN visits v ON s.city = v.city ORDER BY 1, 2",
    "cte": "WITH oslo AS (SELECT * FROM sales WHERE city = 'Oslo') SELECT max(amount) AS m FROM oslo",
}


def by_duckdb(text: str) -> list[list[str]]:
    """Names, then rows, as the reader of a CSV file has them."""
    found = duckdb.sql(text)
    assert found is not None
    return [found.columns, *(["" if v is None else str(v) for v in row] for row in found.fetchall())]


@pytest.mark.conforms("Q9")
@pytest.mark.parametrize("pinned", [False, True], ids=["newest", "pinned"])
def test_duckdb_reads_what_spark_reads(shop: Shop, run: Run, pinned: bool) -> None:
    session = ("--session", shop.before) if pinned else ()
    for name, query in QUERIES.items():
        printed = run("sql", "-w", shop.path, query, "--print", "--dialect", "duckdb", *session)
        assert printed.code == 0
        found = by_duckdb(printed.out)
        by_spark = run("sql", "-w", shop.path, query, "--format", "csv", *session)
        assert found == list(csv.reader(io.StringIO(by_spark.out))), name


def test_pinned_and_newest_differ(shop: Shop, run: Run) -> None:
    """Else the test above would show little."""
    texts = [run("sql", "-w", shop.path, QUERIES["all"], "--print", *s).out for s in ((), ("--session", shop.before))]
    assert [len(by_duckdb(text)) - 1 for text in texts] == [3, 4]


@pytest.mark.parametrize("dialect", ["spark", "duckdb", "postgres"])
def test_printing_starts_no_spark(shop: Shop, run: Run, no_spark: None, dialect: str) -> None:
    ran = run("sql", "-w", shop.path, "SELECT * FROM sales; SELECT * FROM visits", "--print", "--dialect", dialect)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count(";\n") == 2


@pytest.mark.parametrize(
    ("text", "code"), [("DELETE FROM sales", "MV102"), ("SELECT * FROM nope", "MV103"), ("SELEC 1", "MV101")]
)
def test_what_cannot_be_printed(shop: Shop, run: Run, no_spark: None, text: str, code: str) -> None:
    ran = run("sql", "-w", shop.path, text, "--print")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error[{code}]: ")
