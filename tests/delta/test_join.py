"""Inner joins of any width: on keys, on anything, on nothing; with themselves, in a circle."""

import pytest

from matview.algebra.nodes import Filter, Join, Project

from .harness import Case, check, outputs, scalar, scan

R, S, T = scan("r"), scan("s"), scan("t")
ON_KEY = Join((R, S), (scalar("a = c"),))
NULL_SAFE = Join((R, S), (scalar("a <=> c"),))
LESS = Join((R, S), (scalar("a < c"), scalar("b <> d")))
PRODUCT = Join((R, S))
SELF = Join((R, scan("r", "2")), (scalar("b = a2"),))
CIRCLE = Join((R, S, T), (scalar("b = c"), scalar("d = e"), scalar("f = a")))
CHAIN = Join((R, S, T, scan("r", "2")), (scalar("b = c"), scalar("d = e"), scalar("f = a2")))
TRIANGLE = Join((R, scan("r", "2"), scan("r", "3")), (scalar("b = a2"), scalar("b2 = a3"), scalar("b3 = a")))
ONE_SIDED = Join((R, S), (scalar("a = c"), scalar("b > 1"), scalar("TRUE")))
THREE_AT_ONCE = Join((R, S, T), (scalar("a + c = e"),))
BESIDE = Join((R, S, T), (scalar("a = e"),))

CASES = [
    Case("a new row meets an old one", ON_KEY, {"s": [(1, 5)]}, {"r": [(1, (1, 2))]}, {(1, 2, 1, 5): 1}),
    Case("two new rows meet once", ON_KEY, {}, {"r": [(1, (1, 2))], "s": [(1, (1, 5))]}, {(1, 2, 1, 5): 1}),
    Case(
        "two old rows go together, once",
        ON_KEY,
        {"r": [(1, 2)], "s": [(1, 5)]},
        {"r": [(-1, (1, 2))], "s": [(-1, (1, 5))]},
        {(1, 2, 1, 5): -1},
    ),
    Case(
        "one goes, its match comes: they never met", ON_KEY, {"r": [(1, 2)]}, {"r": [(-1, (1, 2))], "s": [(1, (1, 5))]}
    ),
    Case(
        "duplicates multiply",
        ON_KEY,
        {"r": [(1, 2)] * 2, "s": [(1, 5)] * 3},
        {"r": [(1, (1, 2))], "s": [(-1, (1, 5))]},
        {},
    ),
    Case(
        "weights multiply",
        ON_KEY,
        {"r": [(1, 2)] * 2, "s": [(1, 5)] * 3},
        {"r": [(2, (1, 2))], "s": [(-2, (1, 5))]},
        {(1, 2, 1, 5): -2},
    ),
    Case("a null meets nothing", ON_KEY, {"s": [(None, 5)]}, {"r": [(1, (None, 2))]}),
    Case("a null meets a null", NULL_SAFE, {"s": [(None, 5)]}, {"r": [(1, (None, 2))]}, {(None, 2, None, 5): 1}),
    Case(
        "less than, and not equal",
        LESS,
        {"r": [(1, 1), (2, 2)], "s": [(2, 2), (3, 1)]},
        {"r": [(-1, (1, 1)), (1, (0, 0))]},
        {(1, 1, 2, 2): -1, (0, 0, 2, 2): 1, (0, 0, 3, 1): 1},
    ),
    Case(
        "a product",
        PRODUCT,
        {"r": [(1, 1)], "s": [(2, 2)]},
        {"r": [(1, (3, 3))], "s": [(1, (4, 4))]},
        {(1, 1, 4, 4): 1, (3, 3, 2, 2): 1, (3, 3, 4, 4): 1},
    ),
    Case("a product with nothing", PRODUCT, {"r": [(1, 1)]}, {"r": [(1, (2, 2))]}),
    Case("a row that meets itself", SELF, {}, {"r": [(1, (1, 1))]}, {(1, 1, 1, 1): 1}),
    Case("twice the same row meets itself four times", SELF, {"r": [(1, 1)]}, {"r": [(1, (1, 1))]}, {(1, 1, 1, 1): 3}),
    Case(
        "an update in a self-join",
        SELF,
        {"r": [(1, 2), (2, 3)]},
        {"r": [(-1, (2, 3)), (1, (2, 1))]},
        {(1, 2, 2, 3): -1, (1, 2, 2, 1): 1, (2, 1, 1, 2): 1},
    ),
    Case(
        "a circle closes",
        CIRCLE,
        {"r": [(1, 2)], "s": [(2, 3)], "t": [(3, 9)]},
        {"t": [(1, (3, 1))]},
        {(1, 2, 2, 3, 3, 1): 1},
    ),
    Case(
        "a circle changes in all its parts",
        CIRCLE,
        {"r": [(1, 2)], "s": [(2, 3)], "t": [(3, 1)]},
        {"r": [(-1, (1, 2)), (1, (1, 4))], "s": [(-1, (2, 3)), (1, (4, 3))], "t": [(1, (3, 1))]},
        {(1, 2, 2, 3, 3, 1): -1, (1, 4, 4, 3, 3, 1): 2},
    ),
    Case(
        "a triangle in one table",
        TRIANGLE,
        {"r": [(1, 2), (2, 3)]},
        {"r": [(1, (3, 1))]},
        {(1, 2, 2, 3, 3, 1): 1, (2, 3, 3, 1, 1, 2): 1, (3, 1, 1, 2, 2, 3): 1},
    ),
    Case(
        "a chain with one table at both ends",
        CHAIN,
        {"r": [(1, 2)], "s": [(2, 3)], "t": [(3, 1)]},
        {"r": [(1, (1, 2))]},
        {(1, 2, 2, 3, 3, 1, 1, 2): 3},
    ),
    Case("conditions on one side", ONE_SIDED, {"s": [(1, 5)]}, {"r": [(1, (1, 1)), (1, (1, 2))]}, {(1, 2, 1, 5): 1}),
    Case(
        "a condition over three",
        THREE_AT_ONCE,
        {"r": [(1, 0)], "s": [(2, 0)]},
        {"t": [(1, (3, 0)), (1, (4, 0))], "s": [(1, (3, 0))]},
        {(1, 0, 2, 0, 3, 0): 1, (1, 0, 3, 0, 4, 0): 1},
    ),
    Case(
        "a part that is tied to nothing",
        BESIDE,
        {"r": [(1, 0)], "s": [(7, 7), (8, 8)], "t": [(1, 0)]},
        {"s": [(-1, (7, 7))]},
        {(1, 0, 7, 7, 1, 0): -1},
    ),
    Case(
        "everything goes",
        ON_KEY,
        {"r": [(1, 2)], "s": [(1, 5)]},
        {"r": [(-1, (1, 2))], "s": [(-1, (1, 5))]},
        {(1, 2, 1, 5): -1},
    ),
    Case(
        "everything changes",
        ON_KEY,
        {"r": [(1, 2), (2, 2)], "s": [(1, 5), (2, 5)]},
        {
            "r": [(-1, (1, 2)), (-1, (2, 2)), (1, (1, 3)), (1, (2, 3))],
            "s": [(-1, (1, 5)), (-1, (2, 5)), (1, (1, 6)), (1, (2, 6))],
        },
        {(1, 2, 1, 5): -1, (2, 2, 2, 5): -1, (1, 3, 1, 6): 1, (2, 3, 2, 6): 1},
    ),
    Case(
        "a join over joins and projections",
        Join((Project(ON_KEY, outputs(x="a + d")), Filter(T, scalar("f IS NULL"))), (scalar("x = e"),)),
        {"r": [(1, 1)], "s": [(1, 1)], "t": [(2, None), (3, None)]},
        {"s": [(-1, (1, 1)), (1, (1, 2))], "t": [(1, (3, None))]},
        {(2, 2, None): -1, (3, 3, None): 2},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_join(case: Case) -> None:
    check(case)
