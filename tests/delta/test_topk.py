"""ORDER BY ... LIMIT: what falls out, and what moves up."""

import pytest

from matview.algebra.nodes import Aggregate, Join, TopK

from .harness import Case, check, ordered, outputs, scalar, scan

R, S = scan("r"), scan("s")
BEST = TopK(R, ordered("b DESC", "a"), 2)
SECOND = TopK(R, ordered("a", "b"), 1, 1)
NONE_ = TopK(R, ordered("a", "b"), 0)
CUSTOMERS = TopK(Aggregate(R, ("a",), outputs(total="SUM(b)")), ordered("total DESC", "a"), 1)
OF_BEST = Aggregate(BEST, (), outputs(total="SUM(b)"))
BEST_JOINED = Join((BEST, S), (scalar("a = c"),))
N = None

CASES = [
    Case("a better one comes", BEST, {"r": [(1, 1), (2, 2)]}, {"r": [(1, (3, 3))]}, {(1, 1): -1, (3, 3): 1}),
    Case("a worse one comes", BEST, {"r": [(1, 1), (2, 2)]}, {"r": [(1, (3, 0))]}),
    Case("one of the best goes", BEST, {"r": [(1, 1), (2, 2), (3, 3)]}, {"r": [(-1, (3, 3))]}, {(3, 3): -1, (1, 1): 1}),
    Case("fewer than the limit", BEST, {"r": [(1, 1)]}, {"r": [(-1, (1, 1))]}, {(1, 1): -1}),
    Case("equal rows at the bar", BEST, {"r": [(1, 1)] * 3}, {"r": [(-1, (1, 1))]}),
    Case("equal rows push one out", BEST, {"r": [(1, 1), (2, 2)]}, {"r": [(1, (2, 2))]}, {(1, 1): -1, (2, 2): 1}),
    Case(
        "ties are broken by the next column",
        BEST,
        {"r": [(2, 5), (3, 5)]},
        {"r": [(1, (1, 5))]},
        {(3, 5): -1, (1, 5): 1},
    ),
    Case(
        "nulls are last in falling order",
        BEST,
        {"r": [(1, N)]},
        {"r": [(1, (2, 1)), (1, (3, 1))]},
        {(1, N): -1, (2, 1): 1, (3, 1): 1},
    ),
    Case("after an offset", SECOND, {"r": [(1, 1), (2, 2), (3, 3)]}, {"r": [(1, (0, 0))]}, {(2, 2): -1, (1, 1): 1}),
    Case(
        "nulls are first in rising order",
        SECOND,
        {"r": [(1, 1), (2, 2)]},
        {"r": [(1, (N, N))]},
        {(2, 2): -1, (1, 1): 1},
    ),
    Case("a limit of nothing", NONE_, {"r": [(1, 1)]}, {"r": [(1, (0, 0))]}),
    Case("of groups", CUSTOMERS, {"r": [(1, 5), (2, 4)]}, {"r": [(1, (2, 4))]}, {(1, 5): -1, (2, 8): 1}),
    Case("a sum of the best", OF_BEST, {"r": [(1, 1), (2, 2)]}, {"r": [(1, (3, 3))]}, {(3,): -1, (5,): 1}),
    Case(
        "the best, joined",
        BEST_JOINED,
        {"r": [(1, 1), (2, 2)], "s": [(1, 7), (3, 8)]},
        {"r": [(1, (3, 3))], "s": [(1, (3, 9))]},
        {(1, 1, 1, 7): -1, (3, 3, 3, 8): 1, (3, 3, 3, 9): 1},
    ),
    Case(
        "everything changes",
        BEST,
        {"r": [(1, 1), (2, 2)]},
        {"r": [(-1, (1, 1)), (-1, (2, 2)), (3, (5, 5))]},
        {(1, 1): -1, (2, 2): -1, (5, 5): 2},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_topk(case: Case) -> None:
    check(case)
