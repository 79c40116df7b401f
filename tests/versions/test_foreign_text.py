"""Text for another engine gives what Spark gives, also over no rows."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

from matview.versions.text import foreign_text

OVER_NOTHING = {
    "count_if(a > 1)": 0,
    "count_if(a > 1) FILTER (WHERE a > 0)": 0,
    "collect_list(a)": [],
    "collect_set(a)": [],
    "array_agg(a) FILTER (WHERE a > 0)": [],
    "count(a)": 0,
    "sum(a)": None,
}


@pytest.mark.parametrize("call", OVER_NOTHING)
def test_over_no_rows(call: str) -> None:
    text = f"SELECT {call} FROM (SELECT 1 AS a) WHERE FALSE"
    found = duckdb.sql(foreign_text(sqlglot.parse_one(text, read="spark"), "duckdb")).fetchall()
    assert found == [(OVER_NOTHING[call],)]


def test_in_a_window() -> None:
    text = "SELECT count_if(a > 1) OVER (), collect_list(a) FILTER (WHERE a > 9) OVER () FROM (SELECT 2 AS a)"
    assert duckdb.sql(foreign_text(sqlglot.parse_one(text, read="spark"), "duckdb")).fetchall() == [(1, [])]


def test_for_postgres() -> None:
    text = foreign_text(sqlglot.parse_one("SELECT count_if(a) FROM t", read="spark"), "postgres")
    assert " ".join(text.split()) == "SELECT COUNT(CASE WHEN a THEN 1 END) FROM t"


def test_one_inside_the_other() -> None:
    text = "SELECT collect_list(x) FILTER (WHERE y > 0) OVER (PARTITION BY count_if(z > 1)) FROM t"
    assert "COUNT_IF" not in foreign_text(sqlglot.parse_one(text, read="spark"), "duckdb")
