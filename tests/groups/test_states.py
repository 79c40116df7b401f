"""Effective states: what is carried along is what the definition says, and it never goes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matview.groups.check import checked
from matview.groups.graph import BASE, Graph
from matview.groups.states import State, States, Step, effective

from .retail import FIGURE_1
from .strategies import legal_graphs

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PARENTS = {"left": BASE, "right": BASE, "far": "right"}


def at(version: int) -> State:
    return State(version, NOON + timedelta(minutes=version))


def carried(steps: list[Step], parent_of: dict[str, str]) -> States:
    first, *later = steps
    states = States(first.state, first.state.version, dict.fromkeys(parent_of, first.state))
    for step in later:
        states = states.after(step, parent_of)
    return states


@pytest.mark.conforms("C12")
@settings(deadline=None)
@given(legal_graphs(), st.data())
def test_what_is_carried_along_is_the_definition(graph: Graph, data: st.DataObject) -> None:
    made = checked(graph)
    parent_of = {group: made.parent(group) for group in made.groups if group != BASE}
    chosen = st.frozensets(st.sampled_from(sorted(parent_of)), max_size=1) if parent_of else st.just(frozenset[str]())
    kinds = data.draw(st.lists(st.tuples(chosen, st.booleans()), max_size=12))
    steps = [Step(at(1), changed=True)]
    before = carried(steps, parent_of)
    for version, (refreshed, changed) in enumerate(kinds, 2):
        steps.append(Step(at(version), refreshed, changed))
        states = carried(steps, parent_of)
        for group in (BASE, *parent_of):
            assert states.of(group) == effective(steps, parent_of, group)
            assert states.of(group).version >= before.of(group).version
        before = states


def test_a_group_shows_what_its_parent_showed_when_it_was_refreshed() -> None:
    assert {g: checked(FIGURE_1).parent(g) for g in PARENTS} == PARENTS
    steps = [
        Step(at(1), changed=True),
        Step(at(2), frozenset({"right"})),
        Step(at(3), changed=True),
        Step(at(4), frozenset({"far"})),
        Step(at(5), frozenset({"right"})),
    ]
    states = carried(steps, PARENTS)
    assert {group: states.of(group).version for group in (BASE, *PARENTS)} == {BASE: 5, "left": 1, "right": 5, "far": 2}


def test_groups_refreshed_by_one_version_are_so_from_the_root() -> None:
    states = carried([Step(at(1), changed=True), Step(at(2), frozenset({"far", "right"}), changed=True)], PARENTS)
    assert states.of("far") == states.of("right") == at(2)


def test_how_far_behind_a_group_is() -> None:
    now = NOON + timedelta(minutes=10)
    states = carried([Step(at(1), changed=True), Step(at(2), frozenset({"right"}))], PARENTS)
    assert [states.behind(group, now) for group in (BASE, "left", "right", "far")] == [timedelta()] * 4
    later = states.after(Step(at(3), changed=True), PARENTS)
    assert later.behind(BASE, now) == timedelta()
    assert later.behind("right", now) == timedelta(minutes=8)
    assert later.behind("left", now) == timedelta(minutes=9)
    assert later.behind("left", NOON - timedelta(days=1)) == timedelta(), "the clock stepped back"
    assert not later.is_current("right") and states.is_current("right")
