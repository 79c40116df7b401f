"""What is proposed in place of an illegal graph: the smallest changes, and each of them is legal."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from matview.errors import MatviewError, SeveralViewgroups, SnapshotOverDeferred
from matview.groups.assign import assigned
from matview.groups.check import checked
from matview.groups.edits import altered, quoted
from matview.groups.graph import Graph, Group, View
from matview.groups.remedies import Remedy, remedies
from matview.groups.rules import violations

from .illegal import ILLEGAL
from .retail import DAILY, DEFERRED, RETAILERS, SNAPSHOT, tables, view
from .strategies import perturbed


def proposed(graph: Graph) -> tuple[Remedy, ...]:
    made = assigned(graph)
    return remedies(made, violations(made)[0])


def applied(graph: Graph, remedy: Remedy) -> Graph:
    for edit in remedy.edits:
        graph = edit.applied(graph)
    return graph


SNAPSHOT_IN = {
    "two groups": "marketing",
    "one group": "daily",
    "no groups": "TotalItemReturns",
    "groups to choose from": "a",
}


@pytest.mark.conforms("C3")
@pytest.mark.parametrize("name", RETAILERS)
def test_example_2_2_has_exactly_its_three_remedies(name: str) -> None:
    found = proposed(RETAILERS[name])
    group = SNAPSHOT_IN[name]
    assert [(remedy.sentence, *remedy.sql) for remedy in found] == [
        ("make CustReturns immediate", "ALTER MATERIALIZED VIEW CustReturns SET MAINTAIN IMMEDIATE"),
        (
            f"make CustReturns a snapshot view in viewgroup {group}",
            f"ALTER MATERIALIZED VIEW CustReturns SET MAINTAIN SNAPSHOT, SET VIEWGROUP {group}",
        ),
        (
            "redefine TotalItemReturns over customer and sales, without CustReturns",
            "ALTER MATERIALIZED VIEW TotalItemReturns AS SELECT ... FROM customer, sales",
        ),
    ]
    assert all(checked(applied(RETAILERS[name], remedy)) for remedy in found)


def test_the_error_lists_them() -> None:
    with pytest.raises(SnapshotOverDeferred) as refused:
        checked(RETAILERS["one group"])
    assert refused.value.what == "snapshot view TotalItemReturns reads deferred view CustReturns (Rule 8)"
    assert refused.value.help.count("ALTER MATERIALIZED VIEW") == 3


@pytest.mark.parametrize("name", ILLEGAL)
def test_every_rule_has_remedies_that_are_legal(name: str) -> None:
    graph = ILLEGAL[name].graph
    found = proposed(graph)
    assert found
    assert all(checked(applied(graph, remedy)) for remedy in found)
    assert len({remedy.sql for remedy in found}) == len(found)


FOUND = {
    "in two groups": ["put a into a viewgroup of its own", "put a into viewgroup g", "put a into viewgroup h"],
    "deferred over another group": ["make d a snapshot view in viewgroup g", "redefine d over t, without s"],
    "two cycles": ["refresh b EVERY '1 week', as its viewgroup is", "put b into a viewgroup of its own"],
    "two parent groups": ["put b into viewgroup g", "put a into viewgroup h", "redefine b over t, without a"],
    "two groups read by a third": [
        "put a into viewgroup b",
        "put b into viewgroup a",
        "redefine c over t and b, without a",
        "redefine c over a and t, without b",
    ],
    "deferred read elsewhere": ["make d a snapshot view in viewgroup g", "put e into viewgroup base"],
    "immediate over snapshot": ["make a deferred", "make a a snapshot view", "redefine a over t, without s"],
    "tables apart": ["put t into viewgroup base"],
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_proposed(name: str) -> None:
    assert [remedy.sentence for remedy in proposed(ILLEGAL[name].graph)] == FOUND[name]


def test_no_remedy_takes_a_snapshot_view_its_peace_if_another_will_do() -> None:
    for case in ILLEGAL.values():
        found = proposed(case.graph)
        waking = [remedy for remedy in found if _wakes(case.graph, remedy)]
        assert not waking or waking == list(found)


def _wakes(graph: Graph, remedy: Remedy) -> bool:
    after = applied(graph, remedy)
    before = [node for node in graph.views if node.maintain is SNAPSHOT]
    return any(after[node.name].maintain is not SNAPSHOT for node in before)  # type: ignore[union-attr]


def test_a_pair_where_no_single_edit_will_do() -> None:
    """Two deferred views are in the way, and as constants they have no parents to go over to."""
    constants = (view("d", "", DEFERRED), view("e", "", DEFERRED))
    graph = Graph((*constants, view("a", "d e", SNAPSHOT, "g"), view("b", "a", SNAPSHOT, "g")), (Group("g"),))
    found = proposed(graph)
    assert [remedy.sentence for remedy in found] == [
        "make d immediate and make e immediate",
        "make d immediate and make e a snapshot view in viewgroup g",
        "make d a snapshot view in viewgroup g and make e immediate",
        "make d a snapshot view in viewgroup g and make e a snapshot view in viewgroup g",
    ]
    assert {len(remedy.sql) for remedy in found} == {2}
    assert all(checked(applied(graph, remedy)) for remedy in found)


def test_a_chain_is_gathered_where_no_single_edit_will_do() -> None:
    """Each view of a chain has a group of its own, and the last one reads a base table as well."""
    chain = (view("a", "sales", SNAPSHOT), view("b", "a", SNAPSHOT), view("c", "b", SNAPSHOT))
    graph = Graph((*tables("sales", "customer"), *chain, view("d", "c customer", SNAPSHOT)))
    (remedy,) = proposed(graph)
    assert remedy.sentence == "put b, c and d into viewgroup a"
    assert remedy.sql == tuple(f"ALTER MATERIALIZED VIEW {name} SET VIEWGROUP a" for name in "bcd")
    assert checked(applied(graph, remedy))


def test_two_mistakes_are_cured_one_by_one() -> None:
    """Where no edit makes everything legal, those are proposed that cure the violation and do no harm."""
    mistakes = [n for i in range(4) for n in (view(f"d{i}", "t", DEFERRED), view(f"s{i}", f"d{i}", SNAPSHOT))]
    graph = Graph((*tables("t"), *mistakes))
    made = assigned(graph)
    left = len(violations(made))
    while left:
        first = violations(made)[0]
        found = remedies(made, first)
        assert [remedy.sentence.split(" in ")[0] for remedy in found[:2]] == [
            f"make {first.views[1]} immediate",
            f"make {first.views[1]} a snapshot view",
        ]
        made = assigned(applied(made.graph, found[0]))
        assert found[0].is_enough == (not violations(made))
        assert len(violations(made)) < left
        left = len(violations(made))


@settings(deadline=None)
@given(perturbed(), st.data())
def test_remedies_do_what_they_say(graph: Graph, data: st.DataObject) -> None:
    try:
        made = assigned(graph)
    except MatviewError:
        assume(False)
        return
    broken = violations(made)
    assume(broken)
    violation = data.draw(st.sampled_from(broken))
    for remedy in remedies(made, violation):
        after = assigned(applied(graph, remedy))
        keys = {(v.rule, frozenset(v.views)) for v in violations(after)}
        assert keys <= {(v.rule, frozenset(v.views)) for v in broken} - {(violation.rule, frozenset(violation.views))}


def test_the_help_says_how_much_is_cured() -> None:
    mistakes = [n for i in range(4) for n in (view(f"d{i}", "t", DEFERRED), view(f"s{i}", f"d{i}", SNAPSHOT))]
    with pytest.raises(SnapshotOverDeferred) as refused:
        checked(Graph((*tables("t"), *mistakes)))
    assert refused.value.help.startswith(
        "any of these puts this right, and more is wrong:\n    make d0 immediate: ALTER"
    )
    groups = tuple(Group(f"g{i}") for i in range(9))
    with pytest.raises(SeveralViewgroups) as several:
        checked(Graph((*tables("t"), View("a", ("t",), SNAPSHOT, tuple(group.name for group in groups))), groups))
    assert several.value.help.splitlines()[-1] == "    or 4 more"


def test_names_are_quoted_where_they_must_be() -> None:
    assert [quoted(name) for name in ("sales", "by city", "a`b", "2nd")] == ["sales", "`by city`", "`a``b`", "`2nd`"]
    graph = Graph((*tables("t"), view("my view", "t", DEFERRED), View("s", ("my view",))))
    assert proposed(graph)[0].sql == ("ALTER MATERIALIZED VIEW `my view` SET MAINTAIN IMMEDIATE",)


ALTERED: dict[str, tuple[View, View]] = {
    "another policy forgets the group and the cycle": (
        altered(View("a", ("t",), SNAPSHOT, ("g",), DAILY), DEFERRED),
        View("a", ("t",), DEFERRED),
    ),
    "unless they are named beside it": (
        altered(View("a", ("t",), DEFERRED), SNAPSHOT, "g", DAILY),
        View("a", ("t",), SNAPSHOT, ("g",), DAILY),
    ),
    "the same policy changes nothing": (
        altered(View("a", ("t",), SNAPSHOT, ("g",), DAILY), SNAPSHOT),
        View("a", ("t",), SNAPSHOT, ("g",), DAILY),
    ),
    "another group keeps the cycle": (
        altered(View("a", ("t",), SNAPSHOT, ("g",), DAILY), group="h"),
        View("a", ("t",), SNAPSHOT, ("h",), DAILY),
    ),
}


@pytest.mark.parametrize("case", ALTERED)
def test_what_alter_makes_of_a_view(case: str) -> None:
    made, expected = ALTERED[case]
    assert made == expected
