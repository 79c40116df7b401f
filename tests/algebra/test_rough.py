"""Which columns depend on the order in which something was added up."""

from __future__ import annotations

import pytest

from matview.algebra.rough import may_be_rough
from matview.algebra.schema import Column, Schema
from matview.sql.lower import lower
from matview.sql.parse import parse_one

TABLE = Schema((Column("k", "int"), Column("a", "double")))


@pytest.mark.parametrize(
    ("query", "rough"),
    [
        ("SELECT x, y FROM (SELECT sum(a) AS x, max(a) AS y, k FROM t GROUP BY k) q", ["x"]),
        ("SELECT k AS x, count(*) AS y FROM t GROUP BY k", []),
        ("SELECT a AS x, avg(a) OVER (PARTITION BY k) AS y FROM t", ["y"]),
        ("SELECT a AS x, a AS y FROM t UNION ALL SELECT sum(a), max(a) FROM t", ["x"]),
        ("SELECT max(s) AS x, min(k) AS y FROM (SELECT k, sum(a) AS s FROM t GROUP BY k) q", ["x"]),
    ],
)
def test_what_may_be_rough(query: str, rough: list[str]) -> None:
    node = lower(parse_one(query).query, lambda _: TABLE)  # type: ignore[union-attr]
    assert [name for name in node.names if may_be_rough(node, name)] == rough
