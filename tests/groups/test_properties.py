"""P1 to P9 hold for the paper's algorithms on every legal graph, and tell every mistake that is put into them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from matview.errors import MatviewError
from matview.groups.assign import assigned
from matview.groups.check import checked
from matview.groups.graph import Graph
from matview.groups.history import GroupRefresh
from matview.groups.properties import PROPERTIES, breaches
from matview.groups.remedies import remedies
from matview.groups.rules import RULES, violations

from .illegal import ILLEGAL, Illegal
from .model import Model, random_history
from .retail import FIGURE_1
from .strategies import histories, legal_graphs, perturbed
from .wrong import WRONG


@pytest.mark.conforms("C12")
@settings(deadline=None)
@given(legal_graphs(), st.data())
def test_legal_graphs_keep_all_properties(graph: Graph, data: st.DataObject) -> None:
    model = Model(checked(graph))
    for event in data.draw(histories(model.assignment)):
        model.run(event)
    assert breaches(model.history) == ()


@settings(deadline=None)
@given(perturbed(), st.data())
def test_whatever_the_rules_let_pass_keeps_all_properties(graph: Graph, data: st.DataObject) -> None:
    """Graphs that were not made to be legal: the rules leave no gap."""
    try:
        made = assigned(graph)
    except MatviewError:
        assume(False)
        return
    assume(not violations(made))
    model = Model(made)
    for event in data.draw(histories(model.assignment)):
        model.run(event)
    assert breaches(model.history) == ()


@pytest.mark.conforms("C12")
@pytest.mark.parametrize("seed", range(5))
def test_a_long_history_on_figure_1(seed: int) -> None:
    assert breaches(random_history(Model(checked(FIGURE_1)), 60, seed)) == ()


@pytest.mark.conforms("C12")
@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_a_mistake_in_an_algorithm_is_told(kind: type[Model]) -> None:
    missing = set(WRONG[kind])
    for seed in range(8):
        missing -= {breach.name for breach in breaches(random_history(kind(checked(FIGURE_1)), 40, seed))}
        if not missing:
            return
    pytest.fail(f"{kind.__doc__} Nothing was said by {sorted(missing)}")


def test_every_property_can_be_breached() -> None:
    told = set().union(*WRONG.values()) | {case.breached for case in ILLEGAL.values()}
    assert told == set(PROPERTIES)


@pytest.mark.parametrize("name", ILLEGAL)
def test_without_a_rule_a_property_is_breached(name: str) -> None:
    case = ILLEGAL[name]
    others = RULES.keys() - {case.rule, *case.also}
    made = assigned(case.graph)
    assert violations(made, sorted(others)) == ()
    assert case.breached in {breach.name for breach in breaches(_run(case).history)}


@pytest.mark.parametrize("name", ILLEGAL)
def test_a_graph_with_its_remedy_keeps_them(name: str) -> None:
    """It is the rule that makes the difference: the same events on a legal graph go well."""
    made = assigned(ILLEGAL[name].graph)
    graph = made.graph
    for edit in remedies(made, violations(made)[0])[0].edits:
        graph = edit.applied(graph)
    legal = replace(ILLEGAL[name], graph=graph)
    assert breaches(_run(legal).history) == ()


def _run(case: Illegal) -> Model:
    """The events on the graph; a group that a remedy has left without views is not refreshed."""
    model = Model(assigned(case.graph))
    for event in case.events:
        if not isinstance(event, GroupRefresh) or event.group in model.assignment.group_of.values():
            model.run(event)
    return model
