"""Which group each node is put into: by what is declared, by its parents, or its own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from matview.errors import MatviewError, UnknownViewgroup, ViewgroupExists
from matview.groups.assign import assigned
from matview.groups.graph import BASE, Graph, Group, Node, View
from matview.groups.schedule import OnDemand

from .retail import DAILY, DEFERRED, FIGURE_1, IMMEDIATE, RETAILERS, SNAPSHOT, WEEKLY, tables, view
from .strategies import legal_graphs


def test_immediate_and_deferred_views_go_where_their_parents_are() -> None:
    groups = assigned(FIGURE_1).group_of
    assert {name for name in groups if groups[name] == BASE} == {"B1", "B2", "B3", "B4", "V1", "V2", "V3", "V4"}
    assert groups["V9"] == "right"
    assert groups["V11"] == groups["V12"] == "far"


@settings(deadline=None)
@given(legal_graphs())
def test_every_node_has_the_group_that_the_rules_leave_it(graph: Graph) -> None:
    groups = assigned(graph).group_of
    for table in graph.tables:
        assert groups[table.name] == BASE
    for found in graph.views:
        if found.maintain is SNAPSHOT:
            assert (groups[found.name],) == found.declared
        else:
            assert {groups[parent] for parent in found.parents} == {groups[found.name]}


def test_base_tables_that_nothing_connects_are_in_one_group() -> None:
    graph = Graph((*tables("t", "u", "alone"), view("a", "t", IMMEDIATE), view("b", "u", DEFERRED)))
    assert set(assigned(graph).group_of.values()) == {BASE}


def test_a_snapshot_view_without_a_group_has_its_own() -> None:
    graph = Graph((*tables("t"), view("a", "t", SNAPSHOT), View("b", ("t",), cycle=DAILY), view("c", "a", DEFERRED)))
    made = assigned(graph)
    assert made.group_of == {"t": BASE, "a": "a", "b": "b", "c": "a"}
    assert made.groups["a"].schedule == OnDemand()
    assert made.groups["b"].schedule == DAILY
    assert (made.parent("a"), made.parent("b"), made.parent(BASE)) == (BASE, BASE, BASE)


def test_one_that_reads_tables_and_another_group_joins_it() -> None:
    made = assigned(RETAILERS["no groups"])
    assert made.group_of["ItemProfits"] == "ItemSuppSales"
    assert made.members("ItemSuppSales") == ("ItemSuppSales", "ItemProfits")
    assert "ItemProfits" not in made.groups


def test_unless_its_own_is_asked_for() -> None:
    graph = Graph((*tables("t"), view("a", "t", SNAPSHOT), view("b", "a t", SNAPSHOT), view("c", "b", SNAPSHOT, "b")))
    assert assigned(graph).group_of == {"t": BASE, "a": "a", "b": "b", "c": "b"}


def test_the_group_of_one_view_can_be_named_by_others_and_itself() -> None:
    graph = Graph(
        (*tables("t"), view("a", "t", SNAPSHOT, "B"), view("b", "t", SNAPSHOT), view("c", "t", SNAPSHOT, "C"))
    )
    made = assigned(graph)
    assert made.group_of == {"t": BASE, "a": "b", "b": "b", "c": "c"}
    assert set(made.groups) == {BASE, "b", "c"}


def test_names_of_groups_have_no_case() -> None:
    made = assigned(Graph((*tables("t"), view("a", "t", SNAPSHOT, "REPORTS")), (Group("Reports", WEEKLY),)))
    assert made.group_of["a"] == "Reports"
    assert made.partition() == {BASE: {"t"}, "Reports": {"a"}}


def test_a_group_of_constants_is_derived_from_the_base() -> None:
    graph = Graph((view("one", "", SNAPSHOT, "g"), view("two", "", IMMEDIATE)), (Group("g"),))
    made = assigned(graph)
    assert made.group_of == {"one": "g", "two": BASE}
    assert made.parent("g") == BASE


WRONG: dict[str, tuple[tuple[Node, ...], tuple[Group, ...], type[MatviewError], str]] = {
    "no such group": ((*tables("t"), view("a", "t", SNAPSHOT, "g")), (), UnknownViewgroup, "a .* viewgroup g"),
    "for a deferred view": ((*tables("t"), view("a", "t", DEFERRED, "g")), (), UnknownViewgroup, "viewgroup g"),
    "a group that its view has left": (
        (*tables("t"), view("a", "t", SNAPSHOT, "g"), view("b", "t", SNAPSHOT, "a")),
        (Group("g"),),
        UnknownViewgroup,
        "b .* viewgroup a",
    ),
    "a group of that name": ((*tables("t"), view("A", "t", SNAPSHOT)), (Group("a"),), ViewgroupExists, "view A"),
    "a view called base": ((*tables("t"), view("base", "t", SNAPSHOT)), (), ViewgroupExists, "view base"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_assigned(case: str) -> None:
    nodes, groups, kind, words = WRONG[case]
    with pytest.raises(kind, match=words) as refused:
        assigned(Graph(nodes, groups))
    assert refused.value.help
