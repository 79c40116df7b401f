"""The smallest tree gives every case its outcome, and is as small as can be."""

from hypothesis import given
from hypothesis import strategies as st

from matview.versions.tree import Branch, Leaf, Tree, smallest

CASES = st.dictionaries(
    st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 3)), st.sampled_from("xyz"), min_size=1
)


def outcome(tree: Tree[str], case: tuple[object, ...]) -> str:
    while isinstance(tree, Branch):
        tree = tree.yes if case[tree.place] == tree.answer else tree.no
    return tree.outcome


@given(CASES)
def test_every_case_comes_out(outcomes: dict[tuple[int, bool, int], str]) -> None:
    tree = smallest(outcomes)
    assert {case: outcome(tree, case) for case in outcomes} == outcomes
    assert tree.size >= len(set(outcomes.values())) - 1


def test_cases_left_out_cost_nothing() -> None:
    assert smallest({(1, "a"): "x", (2, "a"): "x"}) == Leaf("x")
    assert smallest({(1, "a"): "x", (2, "b"): "y"}).size == 1
    assert smallest({(1, "a"): "x", (1, "b"): "y", (2, "a"): "x", (2, "b"): "y"}).size == 1
