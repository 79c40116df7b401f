"""Groups: they come with their first row, go with their last, and are computed anew in between."""

import pytest

from matview.algebra.nodes import Aggregate, Filter, Join, Project, UnionAll

from .harness import Case, check, outputs, scalar, scan

R, S = scan("r"), scan("s")
COUNTS = Aggregate(R, ("a",), outputs(n="COUNT(*)", known="COUNT(b)", total="SUM(b)"))
LEAST = Aggregate(R, ("a",), outputs(least="MIN(b)", most="MAX(b)"))
DISTINCT = Aggregate(R, ("a",), outputs(n="COUNT(DISTINCT b)"))
MEAN = Aggregate(R, ("a",), outputs(mean="AVG(b)", middle="MEDIAN(b)"))
SOME = Aggregate(R, ("a",), outputs(n="COUNT(*) FILTER (WHERE b > 1)", every="BOOL_AND(b > 1)"))
GLOBAL = Aggregate(R, (), outputs(n="COUNT(*)", total="SUM(b)", most="MAX(a)"))
BY_TWO = Aggregate(R, ("a", "b"), outputs(n="COUNT(*)"))
HAVING = Filter(COUNTS, scalar("n > 1"))
OVER = Aggregate(Project(COUNTS, outputs(k="n", g="a")), ("k",), outputs(groups="COUNT(*)", first="MIN(g)"))
GLOBAL_OVER = Aggregate(COUNTS, (), outputs(most="MAX(n)"))
JOINED = Aggregate(Join((R, S), (scalar("a = c"),)), ("d",), outputs(total="SUM(b)"))
ROLLUP = Aggregate(
    UnionAll((Project(R, outputs(g="a", v="b")), Project(scan("r", "2"), outputs(g="CAST(NULL AS INT)", v="b2")))),
    ("g",),
    outputs(total="SUM(v)"),
)
N = None

CASES = [
    Case("a group comes", COUNTS, {}, {"r": [(2, (1, 5))]}, {(1, 2, 2, 10): 1}),
    Case("a group goes", COUNTS, {"r": [(1, 5), (1, N)]}, {"r": [(-1, (1, 5)), (-1, (1, N))]}, {(1, 2, 1, 5): -1}),
    Case(
        "a group changes", COUNTS, {"r": [(1, 5), (2, 2)]}, {"r": [(1, (1, 6))]}, {(1, 1, 1, 5): -1, (1, 2, 2, 11): 1}
    ),
    Case(
        "an update that leaves the sums as they were",
        COUNTS,
        {"r": [(1, 5), (1, 1)]},
        {"r": [(-1, (1, 5)), (-1, (1, 1)), (2, (1, 3))]},
    ),
    Case("the null group", COUNTS, {"r": [(N, 5)]}, {"r": [(1, (N, N))]}, {(N, 1, 1, 5): -1, (N, 2, 1, 5): 1}),
    Case(
        "a sum of nothing but nulls",
        COUNTS,
        {"r": [(1, 5), (1, N)]},
        {"r": [(-1, (1, 5))]},
        {(1, 2, 1, 5): -1, (1, 1, 0, N): 1},
    ),
    Case(
        "a row moves to another group",
        COUNTS,
        {"r": [(1, 5)]},
        {"r": [(-1, (1, 5)), (1, (2, 5))]},
        {(1, 1, 1, 5): -1, (2, 1, 1, 5): 1},
    ),
    Case(
        "the least goes", LEAST, {"r": [(1, 1), (1, 2), (1, 3)]}, {"r": [(-1, (1, 1))]}, {(1, 1, 3): -1, (1, 2, 3): 1}
    ),
    Case("one of two least goes", LEAST, {"r": [(1, 1), (1, 1)]}, {"r": [(-1, (1, 1))]}),
    Case(
        "the last that is not null goes",
        LEAST,
        {"r": [(1, 1), (1, N)]},
        {"r": [(-1, (1, 1))]},
        {(1, 1, 1): -1, (1, N, N): 1},
    ),
    Case(
        "distinct values",
        DISTINCT,
        {"r": [(1, 1), (1, 1), (1, 2)]},
        {"r": [(-1, (1, 1)), (-1, (1, 2))]},
        {(1, 2): -1, (1, 1): 1},
    ),
    Case("mean and median", MEAN, {"r": [(1, 1), (1, 2)]}, {"r": [(1, (1, 6))]}, {(1, 1.5, 1.5): -1, (1, 3.0, 2.0): 1}),
    Case(
        "FILTER, and a group that it empties",
        SOME,
        {"r": [(1, 2)]},
        {"r": [(-1, (1, 2)), (1, (1, 1))]},
        {(1, 1, True): -1, (1, 0, False): 1},
    ),
    Case("over nothing, one row", GLOBAL, {}, {"r": [(1, (1, 5))]}, {(0, N, N): -1, (1, 5, 1): 1}),
    Case("over nothing again", GLOBAL, {"r": [(1, 5)] * 2}, {"r": [(-2, (1, 5))]}, {(2, 10, 1): -1, (0, N, N): 1}),
    Case("over nothing, still", GLOBAL, {}, {"r": []}),
    Case(
        "the whole table is replaced",
        GLOBAL,
        {"r": [(1, 5)]},
        {"r": [(-1, (1, 5)), (1, (2, 5))]},
        {(1, 5, 1): -1, (1, 5, 2): 1},
    ),
    Case(
        "by two columns, nulls in either",
        BY_TWO,
        {"r": [(N, 1), (1, N)]},
        {"r": [(1, (N, 1)), (1, (N, N))]},
        {(N, 1, 1): -1, (N, 1, 2): 1, (N, N, 1): 1},
    ),
    Case("HAVING: a group passes the bar", HAVING, {"r": [(1, 5)]}, {"r": [(1, (1, 5))]}, {(1, 2, 2, 10): 1}),
    Case(
        "groups of groups",
        OVER,
        {"r": [(1, 0), (2, 0), (3, 0), (3, 0)]},
        {"r": [(1, (1, 0))]},
        {(1, 2, 1): -1, (1, 1, 2): 1, (2, 1, 3): -1, (2, 2, 1): 1},
    ),
    Case(
        "the greatest group",
        GLOBAL_OVER,
        {"r": [(1, 0), (1, 0), (2, 0)]},
        {"r": [(-2, (1, 0)), (-1, (2, 0))]},
        {(2,): -1, (N,): 1},
    ),
    Case(
        "over a join, both sides change",
        JOINED,
        {"r": [(1, 5)], "s": [(1, 7)]},
        {"r": [(1, (1, 1))], "s": [(1, (1, 8))]},
        {(7, 5): -1, (7, 6): 1, (8, 6): 1},
    ),
    Case("groups and their total", ROLLUP, {"r": [(1, 5)]}, {"r": [(1, (2, 1))]}, {(2, 1): 1, (N, 5): -1, (N, 6): 1}),
    Case(
        "everything goes",
        COUNTS,
        {"r": [(1, 5), (N, N)]},
        {"r": [(-1, (1, 5)), (-1, (N, N))]},
        {(1, 1, 1, 5): -1, (N, 1, 0, N): -1},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_aggregate(case: Case) -> None:
    check(case)
