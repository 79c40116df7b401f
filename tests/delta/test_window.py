"""Windows: a partition is computed anew when any of its rows changed."""

import pytest

from matview.algebra.nodes import Filter, Project, Window

from .harness import Case, check, outputs, scalar, scan

R = scan("r")
RANKED = Window(R, ("a",), outputs(at="ROW_NUMBER() OVER (PARTITION BY a ORDER BY b NULLS FIRST)"))
TIED = Window(R, ("a",), outputs(at="RANK() OVER (PARTITION BY a ORDER BY b NULLS FIRST)"))
SHARES = Window(R, ("a",), outputs(total="SUM(b) OVER (PARTITION BY a)", n="COUNT(*) OVER (PARTITION BY a)"))
RUNNING = Window(R, (), outputs(total="SUM(b) OVER (ORDER BY a NULLS FIRST, b NULLS FIRST)"))
BEFORE = Window(R, ("a",), outputs(was="LAG(b) OVER (PARTITION BY a ORDER BY b NULLS FIRST)"))
FIRST = Project(Filter(RANKED, scalar("at = 1")), outputs(g="a", v="b"))
NESTED = Window(RANKED, ("at",), outputs(peers="COUNT(*) OVER (PARTITION BY at)"))
N = None

CASES = [
    Case(
        "a row goes in between",
        RANKED,
        {"r": [(1, 1), (1, 3), (2, 1)]},
        {"r": [(1, (1, 2))]},
        {(1, 3, 2): -1, (1, 2, 2): 1, (1, 3, 3): 1},
    ),
    Case(
        "the first goes",
        RANKED,
        {"r": [(1, 1), (1, 3)]},
        {"r": [(-1, (1, 1))]},
        {(1, 1, 1): -1, (1, 3, 2): -1, (1, 3, 1): 1},
    ),
    Case("equal rows", RANKED, {"r": [(1, 1)]}, {"r": [(2, (1, 1))]}, {(1, 1, 2): 1, (1, 1, 3): 1}),
    Case("one of two equal rows goes", RANKED, {"r": [(1, 1)] * 2}, {"r": [(-1, (1, 1))]}, {(1, 1, 2): -1}),
    Case(
        "the partition of nulls",
        RANKED,
        {"r": [(N, 1)]},
        {"r": [(1, (N, N))]},
        {(N, 1, 1): -1, (N, N, 1): 1, (N, 1, 2): 1},
    ),
    Case("ties", TIED, {"r": [(1, 1), (1, 2)]}, {"r": [(1, (1, 1))]}, {(1, 1, 1): 1, (1, 2, 2): -1, (1, 2, 3): 1}),
    Case(
        "shares of a total",
        SHARES,
        {"r": [(1, 1), (2, 5)]},
        {"r": [(1, (1, 2))]},
        {(1, 1, 1, 1): -1, (1, 1, 3, 2): 1, (1, 2, 3, 2): 1},
    ),
    Case("the last of a partition goes", SHARES, {"r": [(1, 1)]}, {"r": [(-1, (1, 1))]}, {(1, 1, 1, 1): -1}),
    Case(
        "an update moves a row to another partition",
        SHARES,
        {"r": [(1, 1), (2, 5)]},
        {"r": [(-1, (1, 1)), (1, (2, 1))]},
        {(1, 1, 1, 1): -1, (2, 5, 5, 1): -1, (2, 5, 6, 2): 1, (2, 1, 6, 2): 1},
    ),
    Case(
        "without partitions",
        RUNNING,
        {"r": [(1, 1), (3, 3)]},
        {"r": [(1, (2, 2))]},
        {(2, 2, 3): 1, (3, 3, 4): -1, (3, 3, 6): 1},
    ),
    Case("without partitions, everything goes", RUNNING, {"r": [(1, 1)]}, {"r": [(-1, (1, 1))]}, {(1, 1, 1): -1}),
    Case(
        "the row before",
        BEFORE,
        {"r": [(1, 1), (1, 3)]},
        {"r": [(1, (1, 2))]},
        {(1, 3, 1): -1, (1, 2, 1): 1, (1, 3, 2): 1},
    ),
    Case(
        "the first of each",
        FIRST,
        {"r": [(1, 1), (1, 2), (2, 2)]},
        {"r": [(-1, (1, 1)), (1, (2, 1))]},
        {(1, 1): -1, (1, 2): 1, (2, 2): -1, (2, 1): 1},
    ),
    Case("the first of each, unmoved", FIRST, {"r": [(1, 1)]}, {"r": [(1, (1, 2))]}),
    Case(
        "a window over a window",
        NESTED,
        {"r": [(1, 1), (2, 1)]},
        {"r": [(1, (1, 2)), (-1, (2, 1))]},
        {(1, 1, 1, 2): -1, (2, 1, 1, 2): -1, (1, 1, 1, 1): 1, (1, 2, 2, 1): 1},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_window(case: Case) -> None:
    check(case)
