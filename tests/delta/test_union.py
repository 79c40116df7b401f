"""UNION ALL: changes together, columns by position."""

import pytest

from matview.algebra.nodes import Project, UnionAll

from .harness import Case, check, outputs, scan

R, S = scan("r"), scan("s")
BOTH = UnionAll((R, S))
TWICE = UnionAll((R, scan("r", "2"), S))
CROSSED = UnionAll((R, Project(S, outputs(d="d", c="c"))))

CASES = [
    Case("each side", BOTH, {}, {"r": [(1, (1, 2))], "s": [(1, (3, 4))]}, {(1, 2): 1, (3, 4): 1}),
    Case(
        "the same row comes on one side and goes on the other",
        BOTH,
        {"r": [(1, 2)]},
        {"r": [(-1, (1, 2))], "s": [(1, (1, 2))]},
    ),
    Case("one table twice", TWICE, {"r": [(1, 1)]}, {"r": [(-1, (1, 1)), (1, (None, 1))]}, {(1, 1): -2, (None, 1): 2}),
    Case("by position, not by name", CROSSED, {}, {"s": [(1, (3, 4))]}, {(4, 3): 1}),
    Case("only one of the tables changed", TWICE, {"r": [(1, 1)], "s": [(1, 1)]}, {"s": [(-1, (1, 1))]}, {(1, 1): -1}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_union(case: Case) -> None:
    check(case)
