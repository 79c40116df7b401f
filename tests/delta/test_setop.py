"""EXCEPT and INTERSECT, with and without ALL, by how often a row stands on each side."""

from itertools import product
from typing import Literal, get_args

import pytest

from matview.algebra.nodes import Project, SetOp, Values
from matview.algebra.schema import Field

from .harness import Case, check, law, outputs, scalar, scan, shared

R, S = scan("r"), scan("s")
Kind = Literal["except", "except all", "intersect", "intersect all"]
EXCEPT, EXCEPT_ALL, INTERSECT, INTERSECT_ALL = (SetOp(kind, R, S) for kind in get_args(Kind))
SWAPPED = SetOp("intersect", R, Project(S, outputs(d="d", c="c")))
SELF = SetOp("except all", Project(R, outputs(x="a")), Project(scan("r", "2"), outputs(y="b2")))
PAIRS = Values((Field("x", "int"), Field("y", "int")), tuple((scalar(v), scalar(v)) for v in ("1", "2")))
ROW, NULLS = (1, 1), (None, None)

CASES = [
    Case("EXCEPT: comes", EXCEPT, {}, {"r": [(2, ROW)]}, {ROW: 1}),
    Case("EXCEPT: hidden", EXCEPT, {"r": [ROW] * 3}, {"s": [(1, ROW)]}, {ROW: -1}),
    Case("EXCEPT: nulls are equal", EXCEPT, {"r": [NULLS]}, {"s": [(1, NULLS)]}, {NULLS: -1}),
    Case("EXCEPT ALL: one less", EXCEPT_ALL, {"r": [ROW] * 3}, {"s": [(1, ROW)]}, {ROW: -1}),
    Case("EXCEPT ALL: never less than none", EXCEPT_ALL, {"r": [ROW] * 2}, {"s": [(5, ROW)]}, {ROW: -2}),
    Case(
        "EXCEPT ALL: both sides",
        EXCEPT_ALL,
        {"r": [ROW], "s": [ROW] * 3},
        {"r": [(3, ROW)], "s": [(-1, ROW)]},
        {ROW: 2},
    ),
    Case("INTERSECT: both come", INTERSECT, {}, {"r": [(2, ROW)], "s": [(3, ROW)]}, {ROW: 1}),
    Case("INTERSECT: one of two goes", INTERSECT, {"r": [ROW] * 2, "s": [ROW]}, {"r": [(-1, ROW)]}),
    Case("INTERSECT ALL: the lesser number", INTERSECT_ALL, {"r": [ROW], "s": [ROW] * 3}, {"r": [(4, ROW)]}, {ROW: 2}),
    Case("INTERSECT ALL: nulls are equal", INTERSECT_ALL, {"r": [NULLS] * 2}, {"s": [(1, NULLS)]}, {NULLS: 1}),
    Case("by position, not by name", SWAPPED, {"r": [(1, 2)]}, {"s": [(1, (2, 1)), (1, (1, 2))]}, {(1, 2): 1}),
    Case("several rows of VALUES", SetOp("except", R, PAIRS), {"r": [(2, 2), (3, 3)]}, {"r": [(-1, (2, 2))]}, {}),
    Case("one table on both sides", SELF, {"r": [(1, 2)]}, {"r": [(1, (2, 2)), (1, (2, 3))]}, {}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_setop(case: Case) -> None:
    check(case)


@pytest.mark.conforms("M16")
@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_pair_of_numbers(kind: Kind) -> None:
    """From a and b times a row to a' and b' times, for all of 0, 1, 2."""
    numbers = [((i, i), *given) for i, given in enumerate(product(range(3), repeat=4))]
    before = {
        "r": [row for row, a, *_ in numbers for _ in range(a)],
        "s": [row for row, _, b, *_ in numbers for _ in range(b)],
    }
    signed = {
        "r": [(a_new - a, row) for row, a, _, a_new, _ in numbers],
        "s": [(b_new - b, row) for row, _, b, _, b_new in numbers],
    }
    law(shared(), SetOp(kind, R, S), before, signed)
