"""Selection, projection, unnesting, repetition: the change goes through them as the rows do."""

import pytest

from matview.algebra.nodes import Aggregate, Filter, Project, Repeat, Unnest, Values
from matview.algebra.scalars import number
from matview.algebra.schema import Field
from matview.delta import change
from matview.sql.render import query

from .harness import Case, check, outputs, scalar, scan

R, W = scan("r"), scan("w")
LARGE = Filter(R, scalar("b > 2"))
SUMS = Project(R, outputs(total="a + b", same_="a"))
EACH = Unnest(W, scalar("explode(xs)"), (Field("x", "int"),))
PLACED = Unnest(W, scalar("posexplode(xs)"), (Field("at", "int"), Field("x", "int")))
OR_NULL = Unnest(W, scalar("explode(xs)"), (Field("x", "int"),), outer=True)
COUNTED = Repeat(Aggregate(R, ("a",), outputs(n="COUNT(*)")), "n")

CASES = [
    Case("rows that pass and rows that do not", LARGE, {}, {"r": [(1, (1, 3)), (1, (1, 2))]}, {(1, 3): 1}),
    Case("an unknown condition keeps nothing", LARGE, {"r": [(1, None)]}, {"r": [(-1, (1, None))]}),
    Case(
        "duplicates are told apart by number",
        LARGE,
        {"r": [(1, 3)] * 3},
        {"r": [(-1, (1, 3)), (-1, (1, 3)), (1, (1, 4))]},
        {(1, 3): -2, (1, 4): 1},
    ),
    Case(
        "an update that the condition does not see", Filter(R, scalar("a = 1")), {"r": [(2, 5)]}, {"r": [(1, (2, 6))]}
    ),
    Case("different rows become equal", SUMS, {}, {"r": [(1, (1, 2)), (1, (1, 2))]}, {(3, 1): 2}),
    Case(
        "an update of a column that is not read is no change",
        Project(R, outputs(x="a")),
        {"r": [(1, 5)]},
        {"r": [(-1, (1, 5)), (1, (1, 6))]},
    ),
    Case("null in, null out", SUMS, {}, {"r": [(2, (None, 2))]}, {(None, None): 2}),
    Case(
        "everything goes", SUMS, {"r": [(1, 1), (2, 2)]}, {"r": [(-1, (1, 1)), (-1, (2, 2))]}, {(2, 1): -1, (4, 2): -1}
    ),
    Case("no change at all", SUMS, {"r": [(1, 1)]}, {"r": []}),
    Case(
        "an array with a value twice",
        EACH,
        {"w": [(1, [5, 5, None])]},
        {"w": [(-1, (1, [5, 5, None]))]},
        {(1, (5, 5, None), 5): -2, (1, (5, 5, None), None): -1},
    ),
    Case("empty and null arrays have no rows", EACH, {}, {"w": [(1, (1, [])), (1, (2, None))]}),
    Case("positions", PLACED, {}, {"w": [(1, (1, [7, 7]))]}, {(1, (7, 7), 0, 7): 1, (1, (7, 7), 1, 7): 1}),
    Case("a row more often than before", COUNTED, {"r": [(1, 1)]}, {"r": [(2, (1, 7))]}, {(1,): 2}),
    Case("a row no longer", COUNTED, {"r": [(1, 1), (1, 2)]}, {"r": [(-1, (1, 1)), (-1, (1, 2))]}, {(1,): -2}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_linear(case: Case) -> None:
    check(case)


def test_what_did_not_change_has_no_expression() -> None:
    assert change(SUMS, {"s"}) is None
    assert change(SUMS, set()) is None
    assert change(Values((Field("x", "int"),), ((number(1),),)), {"r"}) is None


def test_rows_without_elements_are_kept() -> None:
    """DuckDB has no LATERAL VIEW OUTER to run it with."""
    delta = change(OR_NULL, {"w"})
    assert delta is not None
    assert "LATERAL VIEW OUTER" in query(delta).sql("spark")
