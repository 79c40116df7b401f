"""Left and full joins: a row stands beside nulls as long as it has no match."""

import pytest

from matview.algebra.nodes import Aggregate, Outer

from .harness import Case, check, outputs, scalar, scan

R, S, T = scan("r"), scan("s"), scan("t")
LEFT = Outer("left", R, S, scalar("a = c"))
FULL = Outer("full", R, S, scalar("a = c"))
LESS = Outer("left", R, S, scalar("a < c AND d > 0"))
FULL_LESS = Outer("full", R, S, scalar("a < c"))
SELF = Outer("left", R, scan("r", "2"), scalar("b = a2"))
FULL_SELF = Outer("full", R, scan("r", "2"), scalar("b = a2"))
CHAIN = Outer("left", LEFT, T, scalar("d <=> e"))
NEVER = Outer("full", R, S, scalar("FALSE"))
ALWAYS = Outer("left", R, S, scalar("TRUE"))
TOTALS = Outer("left", R, Aggregate(S, ("c",), outputs(n="SUM(d)")), scalar("a = c"))
N = None

CASES = [
    Case("a row without a match", LEFT, {}, {"r": [(2, (1, 2))]}, {(1, 2, N, N): 2}),
    Case("the first match comes", LEFT, {"r": [(1, 2)]}, {"s": [(1, (1, 5))]}, {(1, 2, N, N): -1, (1, 2, 1, 5): 1}),
    Case(
        "the last match goes",
        LEFT,
        {"r": [(1, 2)] * 2, "s": [(1, 5)]},
        {"s": [(-1, (1, 5))]},
        {(1, 2, 1, 5): -2, (1, 2, N, N): 2},
    ),
    Case(
        "one of two matches goes",
        LEFT,
        {"r": [(1, 2)], "s": [(1, 5), (1, 6)]},
        {"s": [(-1, (1, 5))]},
        {(1, 2, 1, 5): -1},
    ),
    Case(
        "a match is replaced",
        LEFT,
        {"r": [(1, 2)], "s": [(1, 5)]},
        {"s": [(-1, (1, 5)), (1, (1, 6))]},
        {(1, 2, 1, 5): -1, (1, 2, 1, 6): 1},
    ),
    Case(
        "the match moves to another row",
        LEFT,
        {"r": [(1, 2), (3, 4)], "s": [(1, 5)]},
        {"s": [(-1, (1, 5)), (1, (3, 5))]},
        {(1, 2, 1, 5): -1, (1, 2, N, N): 1, (3, 4, N, N): -1, (3, 4, 3, 5): 1},
    ),
    Case(
        "a match of all nulls is told from none",
        Outer("left", R, S, scalar("a <=> c")),
        {"r": [(N, 2)]},
        {"s": [(1, (N, N))]},
        {},
    ),
    Case("row and match come together", LEFT, {}, {"r": [(1, (1, 2))], "s": [(1, (1, 5))]}, {(1, 2, 1, 5): 1}),
    Case(
        "row and match go together",
        LEFT,
        {"r": [(1, 2)], "s": [(1, 5)]},
        {"r": [(-1, (1, 2))], "s": [(-1, (1, 5))]},
        {(1, 2, 1, 5): -1},
    ),
    Case(
        "the row goes, its match comes",
        LEFT,
        {"r": [(1, 2)]},
        {"r": [(-1, (1, 2))], "s": [(1, (1, 5))]},
        {(1, 2, N, N): -1},
    ),
    Case("nulls in the key stay alone", LEFT, {"r": [(N, 2)]}, {"s": [(1, (N, 5))]}),
    Case(
        "a condition on the right side alone",
        LESS,
        {"r": [(1, 1)], "s": [(2, 0)]},
        {"s": [(-1, (2, 0)), (1, (2, 1))]},
        {(1, 1, N, N): -1, (1, 1, 2, 1): 1},
    ),
    Case("a lonely row of the right", FULL, {}, {"s": [(1, (1, 5))]}, {(N, N, 1, 5): 1}),
    Case("two lonely rows meet", FULL, {"r": [(1, 2)]}, {"s": [(1, (1, 5))]}, {(1, 2, N, N): -1, (1, 2, 1, 5): 1}),
    Case(
        "a couple parts",
        FULL,
        {"r": [(1, 2)], "s": [(1, 5)]},
        {"r": [(-1, (1, 2))]},
        {(1, 2, 1, 5): -1, (N, N, 1, 5): 1},
    ),
    Case(
        "both change",
        FULL,
        {"r": [(1, 2), (3, 3)], "s": [(1, 5), (4, 4)]},
        {"r": [(-1, (1, 2)), (1, (4, 1))], "s": [(-1, (1, 5)), (1, (3, 6))]},
        {(1, 2, 1, 5): -1, (4, 1, 4, 4): 1, (N, N, 4, 4): -1, (3, 3, N, N): -1, (3, 3, 3, 6): 1},
    ),
    Case(
        "nulls are lonely on both sides",
        FULL,
        {},
        {"r": [(1, (N, 1))], "s": [(1, (N, 1))]},
        {(N, 1, N, N): 1, (N, N, N, 1): 1},
    ),
    Case(
        "full, less than",
        FULL_LESS,
        {"r": [(1, 1), (9, 9)], "s": [(0, 0)]},
        {"s": [(1, (2, 2))]},
        {(1, 1, N, N): -1, (1, 1, 2, 2): 1},
    ),
    Case(
        "with itself", SELF, {"r": [(1, 2)]}, {"r": [(1, (2, 2))]}, {(1, 2, N, N): -1, (1, 2, 2, 2): 1, (2, 2, 2, 2): 1}
    ),
    Case(
        "full with itself",
        FULL_SELF,
        {"r": [(1, 2)]},
        {"r": [(1, (2, 3))]},
        {(1, 2, N, N): -1, (1, 2, 2, 3): 1, (2, 3, N, N): 1},
    ),
    Case(
        "outer over outer",
        CHAIN,
        {"r": [(1, 2)], "t": [(N, 7), (5, 8)]},
        {"s": [(1, (1, 5))]},
        {(1, 2, N, N, N, 7): -1, (1, 2, 1, 5, 5, 8): 1},
    ),
    Case(
        "outer over outer, all change",
        CHAIN,
        {"r": [(1, 2)], "s": [(1, 5)], "t": [(5, 8)]},
        {"r": [(1, (3, 3))], "s": [(-1, (1, 5))], "t": [(-1, (5, 8)), (1, (N, 7))]},
        {(1, 2, 1, 5, 5, 8): -1, (1, 2, N, N, N, 7): 1, (3, 3, N, N, N, 7): 1},
    ),
    Case(
        "nobody ever meets",
        NEVER,
        {"r": [(1, 2)]},
        {"r": [(-1, (1, 2))], "s": [(1, (1, 5))]},
        {(1, 2, N, N): -1, (N, N, 1, 5): 1},
    ),
    Case(
        "everybody meets",
        ALWAYS,
        {"r": [(1, 2)], "s": [(3, 4)]},
        {"s": [(-1, (3, 4))]},
        {(1, 2, 3, 4): -1, (1, 2, N, N): 1},
    ),
    Case(
        "over an aggregate",
        TOTALS,
        {"r": [(1, 2), (3, 4)], "s": [(1, 5)]},
        {"s": [(1, (1, 6)), (1, (3, N))]},
        {(1, 2, 1, 5): -1, (1, 2, 1, 11): 1, (3, 4, N, N): -1, (3, 4, 3, N): 1},
    ),
    Case(
        "everything goes",
        FULL,
        {"r": [(1, 2), (2, 2)], "s": [(1, 5), (3, 3)]},
        {"r": [(-1, (1, 2)), (-1, (2, 2))], "s": [(-1, (1, 5)), (-1, (3, 3))]},
        {(1, 2, 1, 5): -1, (2, 2, N, N): -1, (N, N, 3, 3): -1},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_outer(case: Case) -> None:
    check(case)
