"""Where SQL leaves a choice open, the lowering makes it: orders are total, and one answer is picked every time."""

from __future__ import annotations

import pytest
from sqlglot import exp

from matview.algebra.nodes import Aggregate, Node, Outer, Project, Scan, Semi, TopK, Unnest, Window, walk
from matview.sql.lower import lower
from matview.sql.parse import parse_one

from .tables import schema_of


def lowered(text: str) -> Node:
    return lower(parse_one(text).query, schema_of)


def windows(text: str) -> list[str]:
    found = [n for n in walk(lowered(text)) if isinstance(n, Window)]
    return [e.sql("spark") for window in found for _, e in window.functions]


def aggregates(text: str) -> list[str]:
    found = [n for n in walk(lowered(text)) if isinstance(n, Aggregate)]
    return [e.sql("spark") for node in found for _, e in node.aggregates]


TIES = "`people.id`"


@pytest.mark.parametrize("function", ["row_number()", "ntile(2)", "lag(age)", "lead(age, 1)"])
def test_by_row(function: str) -> None:
    (text,) = windows(f"SELECT {function} OVER (PARTITION BY city ORDER BY age) AS x FROM people")
    assert f"ORDER BY `people.age`, {TIES})" in text


@pytest.mark.parametrize("function", ["rank()", "dense_rank()", "percent_rank()", "cume_dist()", "sum(age)"])
def test_by_peers(function: str) -> None:
    (text,) = windows(f"SELECT {function} OVER (PARTITION BY city ORDER BY age DESC) AS x FROM people")
    assert text.endswith("OVER (PARTITION BY `people.city` ORDER BY `people.age` DESC)")


def test_ties_in_a_bag() -> None:
    (text,) = windows("SELECT row_number() OVER (PARTITION BY city ORDER BY n DESC) AS x FROM visits")
    assert text.endswith("ORDER BY `visits.n` DESC, `visits.day`)")


def test_rows_frame() -> None:
    (text,) = windows("SELECT sum(age) OVER (PARTITION BY city ORDER BY age ROWS 2 PRECEDING) AS x FROM people")
    assert f"ORDER BY `people.age`, {TIES} ROWS BETWEEN" in text.replace("rows", "ROWS")


def test_first_and_last() -> None:
    (first,) = windows("SELECT first_value(name) OVER (PARTITION BY city ORDER BY age) AS x FROM people")
    assert f"ORDER BY `people.age`, {TIES} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW" in first
    (last,) = windows("SELECT last_value(name) OVER (PARTITION BY city ORDER BY age) AS x FROM people")
    assert last.startswith("MAX(`people.name`)")
    assert "RANGE BETWEEN CURRENT ROW AND CURRENT ROW" in last


def test_collected_in_a_window() -> None:
    node = lowered("SELECT collect_list(age) OVER (PARTITION BY city) AS x FROM people")
    assert any(
        "SORT_ARRAY(`array" in e.sql("spark") for n in walk(node) if isinstance(n, Project) for _, e in n.outputs
    )


def test_one_window_node_for_each_partition() -> None:
    node = lowered(
        "SELECT sum(age) OVER (PARTITION BY city, boss) AS a, max(id) OVER (PARTITION BY boss, city) AS b,"
        " count(*) OVER (PARTITION BY city) AS c, count(*) OVER () AS d FROM people"
    )
    found = [n.partition for n in walk(node) if isinstance(n, Window)]
    assert sorted(map(len, found)) == [0, 1, 2]


def test_top_k_has_a_total_order() -> None:
    node = lowered("SELECT name, age FROM people ORDER BY age DESC LIMIT 2")
    (top,) = [n for n in walk(node) if isinstance(n, TopK)]
    assert [o.this.name for o in top.order] == ["result.age", "result.name"]
    assert [bool(o.args["nulls_first"]) for o in top.order] == [False, True]
    assert all(isinstance(o, exp.Ordered) for o in top.order)


@pytest.mark.parametrize("function", ["any_value", "first", "first_value", "last", "last_value"])
def test_any_of_several(function: str) -> None:
    assert aggregates(f"SELECT {function}(name) AS x FROM people") == ["MIN(`people.name`)"]


def test_ties_of_max_by_and_mode() -> None:
    (text,) = aggregates("SELECT max_by(name, age) AS x FROM people")
    assert "CASE WHEN NOT `people.age` IS NULL THEN STRUCT(`people.age`" in text
    assert aggregates("SELECT mode(name) AS x FROM people") == ["MODE(`people.name`, TRUE)"]


def test_each_aggregate_once() -> None:
    made = aggregates(
        "SELECT city, sum(age) AS a, SUM(AGE) + count(*) AS b FROM people GROUP BY city ORDER BY sum(age)"
    )
    assert made == ["SUM(`people.age`)", "COUNT(*)"]


def test_outer_lateral_view() -> None:
    (unnest,) = [
        n
        for n in walk(lowered("SELECT id, e FROM lists LATERAL VIEW OUTER explode(xs) t AS e"))
        if isinstance(n, Unnest)
    ]
    assert unnest.outer
    assert [(f.name, f.type) for f in unnest.made] == [("t.e", "int")]


def test_not_in_without_nulls_is_plain_equality() -> None:
    def condition(text: str) -> str:
        return next(n.on.sql("spark") for n in walk(lowered(text)) if isinstance(n, Semi))

    plain = condition("SELECT id FROM people WHERE id NOT IN (SELECT id FROM sales)")
    assert plain == "`people.id` = `subquery.id`"
    careful = condition("SELECT id FROM people WHERE id NOT IN (SELECT person FROM sales)")
    assert careful == "COALESCE(`people.id` = `subquery.person`, TRUE)"


def test_equality_correlation_needs_no_outer_rows() -> None:
    """The inner rows are grouped by what they are correlated by; the outer table is read once."""
    node = lowered("SELECT id, (SELECT sum(amount) FROM sales s WHERE s.person = p.id) AS t FROM people p")
    assert [n.table for n in walk(node) if isinstance(n, Scan)] == ["people", "sales"]
    assert any(isinstance(n, Outer) for n in walk(node))


def test_names_in_any_case() -> None:
    node = lowered("SELECT a.id FROM People a JOIN PEOPLE b ON a.id = b.boss")
    scans = [n for n in walk(node) if isinstance(n, Scan)]
    assert [s.table for s in scans] == ["People", "People"]
    assert [s.names[0] for s in scans] == ["People.id", "People_2.id"]
