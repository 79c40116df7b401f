"""EXISTS and NOT EXISTS, IN and NOT IN: a place is lost with the last match and won with the first."""

import pytest

from matview.algebra.nodes import Aggregate, Project, Semi

from .harness import Case, check, outputs, scalar, scan

R, S = scan("r"), scan("s")
EXISTS = Semi("semi", R, S, scalar("a = c"))
MISSING = Semi("anti", R, S, scalar("a = c"))
NOT_IN = Semi("anti", R, S, scalar("coalesce(a = c, TRUE)"))
NOT_IN_GROUP = Semi("anti", R, S, scalar("b = d AND coalesce(a = c, TRUE)"))
LESS = Semi("semi", R, S, scalar("a < c AND b + d > 0"))
SELF = Semi("anti", R, scan("r", "2"), scalar("a = a2 AND b < b2"))
ANY = Semi("semi", R, S, scalar("TRUE"))
NONE_ = Semi("anti", R, S, scalar("TRUE"))
BUSY = Semi("semi", R, Aggregate(S, ("c",), outputs(n="COUNT(*)")), scalar("a = c AND n > 1"))
TWO_LEVELS = Semi(
    "anti", Semi("semi", R, S, scalar("a = c")), Project(scan("s", "2"), outputs(y="d2")), scalar("b = y")
)

CASES = [
    Case("the first match comes", EXISTS, {"r": [(1, 2)]}, {"s": [(1, (1, 5))]}, {(1, 2): 1}),
    Case("a second match comes", EXISTS, {"r": [(1, 2)], "s": [(1, 5)]}, {"s": [(1, (1, 6))]}),
    Case("one of two equal matches goes", EXISTS, {"r": [(1, 2)], "s": [(1, 5)] * 2}, {"s": [(-1, (1, 5))]}),
    Case("the last match goes", EXISTS, {"r": [(1, 2)] * 2, "s": [(1, 5)]}, {"s": [(-1, (1, 5))]}, {(1, 2): -2}),
    Case("a match is replaced", EXISTS, {"r": [(1, 2)], "s": [(1, 5)]}, {"s": [(-1, (1, 5)), (1, (1, 6))]}),
    Case("the row comes with its match", EXISTS, {}, {"r": [(1, (1, 2))], "s": [(1, (1, 5))]}, {(1, 2): 1}),
    Case("the row goes, its match comes", EXISTS, {"r": [(1, 2)]}, {"r": [(-1, (1, 2))], "s": [(1, (1, 5))]}),
    Case(
        "one of two equal rows goes as the match comes",
        EXISTS,
        {"r": [(1, 2)] * 2},
        {"r": [(-1, (1, 2))], "s": [(1, (1, 5))]},
        {(1, 2): 1},
    ),
    Case(
        "the row goes with its match",
        EXISTS,
        {"r": [(1, 2)], "s": [(1, 5)]},
        {"r": [(-1, (1, 2))], "s": [(-1, (1, 5))]},
        {(1, 2): -1},
    ),
    Case("only rows change", EXISTS, {"s": [(1, 5)]}, {"r": [(2, (1, 2)), (1, (3, 3))]}, {(1, 2): 2}),
    Case("a null has no match", EXISTS, {"r": [(None, 2)]}, {"s": [(1, (None, 5))]}),
    Case("without a match a null stays", MISSING, {"r": [(None, 2)]}, {"s": [(1, (None, 5)), (1, (1, 5))]}),
    Case("a place is lost", MISSING, {"r": [(1, 2)] * 2}, {"s": [(2, (1, 5))]}, {(1, 2): -2}),
    Case(
        "a place is won",
        MISSING,
        {"r": [(1, 2)], "s": [(1, 5), (1, 6)]},
        {"s": [(-1, (1, 5)), (-1, (1, 6))]},
        {(1, 2): 1},
    ),
    Case(
        "rows come and matches go",
        MISSING,
        {"r": [(1, 2)], "s": [(1, 5)]},
        {"r": [(1, (1, 2)), (1, (1, 3))], "s": [(-1, (1, 5))]},
        {(1, 2): 2, (1, 3): 1},
    ),
    Case(
        "NOT IN: a null on the right empties it",
        NOT_IN,
        {"r": [(1, 2), (2, 2)]},
        {"s": [(1, (None, 0))]},
        {(1, 2): -1, (2, 2): -1},
    ),
    Case(
        "NOT IN: the null goes",
        NOT_IN,
        {"r": [(1, 2), (2, 2)], "s": [(None, 0), (2, 0)]},
        {"s": [(-1, (None, 0))]},
        {(1, 2): 1},
    ),
    Case(
        "NOT IN: a null on the left is in unless there is nothing",
        NOT_IN,
        {"r": [(None, 1)], "s": [(3, 3)]},
        {"s": [(-1, (3, 3))]},
        {(None, 1): 1},
    ),
    Case(
        "NOT IN over nothing has everything",
        NOT_IN,
        {},
        {"r": [(1, (None, 1)), (1, (1, 1))]},
        {(None, 1): 1, (1, 1): 1},
    ),
    Case("NOT IN with a correlated part", NOT_IN_GROUP, {"r": [(1, 1), (1, 2)]}, {"s": [(1, (None, 2))]}, {(1, 2): -1}),
    Case("less than", LESS, {"r": [(1, 1), (5, 1)]}, {"s": [(1, (2, 0)), (1, (3, -1))]}, {(1, 1): 1}),
    Case(
        "the newest of each key, in one table",
        SELF,
        {"r": [(1, 1), (2, 1)]},
        {"r": [(1, (1, 3)), (1, (1, 2))]},
        {(1, 1): -1, (1, 3): 1},
    ),
    Case("the newest of each key goes", SELF, {"r": [(1, 1), (1, 3)]}, {"r": [(-1, (1, 3))]}, {(1, 3): -1, (1, 1): 1}),
    Case(
        "anything at all", ANY, {"r": [(1, 1), (None, None)]}, {"s": [(1, (None, None))]}, {(1, 1): 1, (None, None): 1}
    ),
    Case(
        "nothing at all",
        NONE_,
        {"r": [(1, 1)], "s": [(1, 1)]},
        {"s": [(-1, (1, 1))], "r": [(1, (2, 2))]},
        {(1, 1): 1, (2, 2): 1},
    ),
    Case("matches that are counted", BUSY, {"r": [(1, 1)], "s": [(1, 1)]}, {"s": [(1, (1, 1))]}, {(1, 1): 1}),
    Case(
        "semi under anti", TWO_LEVELS, {"r": [(1, 1)], "s": [(1, 1)]}, {"s": [(-1, (1, 1)), (1, (1, 2))]}, {(1, 1): 1}
    ),
    Case(
        "everything goes",
        EXISTS,
        {"r": [(1, 2)] * 2, "s": [(1, 5)]},
        {"r": [(-2, (1, 2))], "s": [(-1, (1, 5))]},
        {(1, 2): -2},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_semi(case: Case) -> None:
    check(case)
