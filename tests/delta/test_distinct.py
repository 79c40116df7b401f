"""Duplicate elimination: the first of equal rows counts, and the last."""

import pytest

from matview.algebra.nodes import Aggregate, UnionAll

from .harness import Case, check, scan

R, S = scan("r"), scan("s")
ROWS = Aggregate(R, ("a", "b"))
CITIES = Aggregate(R, ("b",))
UNION = Aggregate(UnionAll((R, S)), ("a", "b"))
TWICE = Aggregate(Aggregate(R, ("a", "b")), ("a",))
N = None

CASES = [
    Case("the first comes", ROWS, {}, {"r": [(3, (1, 1))]}, {(1, 1): 1}),
    Case("another comes", ROWS, {"r": [(1, 1)]}, {"r": [(1, (1, 1))]}),
    Case("one of two goes", ROWS, {"r": [(1, 1)] * 2}, {"r": [(-1, (1, 1))]}),
    Case("the last goes", ROWS, {"r": [(1, 1)] * 2}, {"r": [(-2, (1, 1))]}, {(1, 1): -1}),
    Case("nulls are equal", ROWS, {"r": [(N, N)]}, {"r": [(1, (N, N)), (1, (N, 1))]}, {(N, 1): 1}),
    Case("by some columns", CITIES, {"r": [(1, 7), (2, 7)]}, {"r": [(-1, (1, 7)), (1, (1, N))]}, {(N,): 1}),
    Case("an update that is not seen", CITIES, {"r": [(1, 7)]}, {"r": [(-1, (1, 7)), (1, (2, 7))]}),
    Case("UNION: it stays on the other side", UNION, {"r": [(1, 1)], "s": [(1, 1)]}, {"r": [(-1, (1, 1))]}),
    Case(
        "UNION: gone on both",
        UNION,
        {"r": [(1, 1)], "s": [(1, 1)]},
        {"r": [(-1, (1, 1))], "s": [(-1, (1, 1))]},
        {(1, 1): -1},
    ),
    Case("UNION: moves over", UNION, {"r": [(1, 1)]}, {"r": [(-1, (1, 1))], "s": [(1, (1, 1))]}),
    Case(
        "distinct over distinct", TWICE, {"r": [(1, 1)] * 2}, {"r": [(-2, (1, 1)), (1, (1, 2)), (1, (2, 2))]}, {(2,): 1}
    ),
    Case(
        "everything changes",
        ROWS,
        {"r": [(1, 1), (2, 2)]},
        {"r": [(-1, (1, 1)), (-1, (2, 2)), (2, (3, 3))]},
        {(1, 1): -1, (2, 2): -1, (3, 3): 1},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_distinct(case: Case) -> None:
    check(case)
