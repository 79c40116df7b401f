"""Rules 1 to 9: what each forbids, what is legal, and what would go wrong without each."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from matview.groups.assign import assigned
from matview.groups.check import ERRORS, checked
from matview.groups.graph import BASE, Graph, Maintain
from matview.groups.rules import RULES, TELLING, violations

from .illegal import ILLEGAL, Illegal
from .retail import FIGURE_1, RETAILERS
from .strategies import legal_graphs


@pytest.fixture(params=ILLEGAL)
def case(request: pytest.FixtureRequest) -> Illegal:
    return ILLEGAL[request.param]


@pytest.mark.conforms("C3")
def test_each_rule_finds_its_violation(case: Illegal) -> None:
    found = violations(assigned(case.graph))
    assert {violation.rule for violation in found} == {case.rule, *case.also}
    assert (found[0].rule, found[0].views) == (case.rule, case.views)
    assert all(name in found[0].why for name in case.views)


@pytest.mark.conforms("C3")
def test_each_rule_has_an_error_of_its_own(case: Illegal) -> None:
    with pytest.raises(ERRORS[case.rule]) as refused:
        checked(case.graph)
    assert refused.value.code == f"MV60{case.rule}"
    assert f"Rule {case.rule}" in refused.value.what
    assert all(name in refused.value.what for name in case.views)
    assert "ALTER MATERIALIZED VIEW" in refused.value.help or "CREATE TABLE" in refused.value.help


def test_every_rule_is_shown_and_checked() -> None:
    assert {case.rule for case in ILLEGAL.values()} == set(RULES) == set(TELLING) == set(ERRORS)
    assert len({kind.code for kind in ERRORS.values()}) == 9


@pytest.mark.conforms("C3")
def test_figure_1_is_legal() -> None:
    made = checked(FIGURE_1)
    assert {group: made.parent(group) for group in ("left", "right", "far")} == {
        "left": BASE,
        "right": BASE,
        "far": "right",
    }


@settings(deadline=None)
@given(legal_graphs())
def test_what_is_legal_by_construction_is_legal(graph: Graph) -> None:
    assert violations(assigned(graph)) == ()


@settings(deadline=None)
@given(legal_graphs())
def test_what_follows_from_the_rules(graph: Graph) -> None:
    """All immediate views are in the base group, and the groups are a tree with the base group as its root."""
    made = checked(graph)
    assert {made.group_of[view.name] for view in made.views_of(Maintain.IMMEDIATE)} <= {BASE}
    for group in set(made.group_of.values()):
        path = [group]
        while path[-1] != BASE:
            path.append(made.parent(path[-1]))
            assert len(path) <= len(made.groups)


@pytest.mark.parametrize("name", RETAILERS)
def test_the_retailers_wishes_violate_rule_8_alone(name: str) -> None:
    """Rule 6 says the same of the same pair; Rule 8 is named, as in the paper."""
    found = violations(assigned(RETAILERS[name]))
    assert [(violation.rule, violation.views) for violation in found] == [
        (8, ("TotalItemReturns", "CustReturns")),
        (6, ("CustReturns", "TotalItemReturns")),
    ]
