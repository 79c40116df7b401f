"""The generator and the shrinker themselves: the same seed gives the same case, and everything asked for is drawn."""

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from . import trying
from .generator import query
from .shrink import simpler_query, smaller_world
from .tables import TABLES, World, world
from .trying import Failure, kept, read

SEEDS = range(400)
PARTS = (
    "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "USING (",
    "NOT EXISTS (", "EXISTS (", " IN (SELECT", "NOT IN (SELECT", "UNION ALL", "UNION (", "EXCEPT (", "EXCEPT ALL (",
    "INTERSECT (", "INTERSECT ALL (", "MINUS (", "SELECT DISTINCT", "GROUP BY", "HAVING", "FILTER (WHERE", "ROLLUP (",
    "CUBE (", "GROUPING SETS (", "grouping(", "count(DISTINCT", "sum(", "avg(", "min(", "max(", "stddev(", "variance(",
    "bool_and(", "bool_or(", "any_value(", "percentile(", "median(", "collect_set(", "OVER (PARTITION BY",
    "row_number()", "rank()", "lag(", "ROWS BETWEEN", "LIMIT", "OFFSET", "WITH cte", "CASE WHEN", "LATERAL VIEW",
    "VALUES", "<=>", "IS NULL", "LIKE", "BETWEEN", "coalesce(", "concat(", "= (SELECT",
)  # fmt: skip


def test_a_seed_gives_the_same_case() -> None:
    assert [query(seed) for seed in range(50)] == [query(seed) for seed in range(50)]
    assert [world(seed) for seed in range(50)] == [world(seed) for seed in range(50)]


def test_everything_is_drawn() -> None:
    drawn = "\n".join(query(seed) for seed in SEEDS)
    assert [part for part in PARTS if part not in drawn] == []


def test_queries_nest() -> None:
    depths = {_depth(sqlglot.parse_one(query(seed), dialect="spark")) for seed in range(100)}
    assert {1, 2, 3, 4} <= depths


def _depth(node: exp.Expr) -> int:
    """How many SELECTs stand in one another."""
    under = max((_depth(part) for part in node.iter_expressions()), default=0)
    return under + isinstance(node, exp.Select)


def test_worlds_are_legal() -> None:
    for seed in range(200):
        made = world(seed)
        for table, signed in made.change.items():
            rows = list(made.before[table])
            rows.extend(row for weight, row in signed for _ in range(weight))
            for row in (row for weight, row in signed for _ in range(-weight)):
                rows.remove(row)
            if TABLES[table].key:
                assert len({row[0] for row in rows}) == len(rows)


def test_a_case_is_made_smaller() -> None:
    before = {table: [(1,), (2,)] for table in TABLES}
    large = World(before, {"orders": [(1, (3,)), (-1, (1,))], "items": [(1, (1,))]})

    def fails(sql: str, given: World) -> bool:
        return "visits" in sql and (1,) in given.before["visits"] and bool(given.change.get("orders"))

    small = smaller_world("SELECT n FROM visits", large, fails)
    assert sum(len(rows) for rows in small.before.values()) <= 2
    assert [len(rows) for rows in small.change.values()] == [1]
    text = "SELECT a.n FROM (SELECT DISTINCT n FROM visits WHERE n > 1 AND city = 'Oslo') a JOIN items ON TRUE"
    assert simpler_query(text, large, fails) == "SELECT n FROM visits"


def test_a_failure_is_kept_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "SEEDS", tmp_path)
    failure = Failure("7", "change", "+1 of (1,)", "SELECT 1", world(7))
    sql, given = read(kept(failure))
    assert sql == "SELECT 1"
    assert given == failure.world
