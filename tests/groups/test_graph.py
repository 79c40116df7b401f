"""The dependency graph: order, ancestors, and what is no graph at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from matview.errors import BadDefinition, CyclicViews, MatviewError, TableExists, UnknownTable, ViewgroupExists
from matview.groups.graph import BaseTable, Graph, Group, Maintain, Node, View

from .retail import DAILY, FIGURE_1
from .strategies import DEPTH, GROUPS, VIEWS, legal_graphs


@pytest.mark.conforms("C2")
@settings(deadline=None)
@given(legal_graphs())
def test_the_order_has_parents_first(graph: Graph) -> None:
    assert sorted(graph.order) == sorted(node.name for node in graph.nodes)
    place = {name: number for number, name in enumerate(graph.order)}
    assert all(place[parent] < place[view.name] for view in graph.views for parent in view.parents)


@settings(deadline=None)
@given(legal_graphs())
def test_ancestors_and_descendants_mirror_one_another(graph: Graph) -> None:
    for name in graph.order:
        assert graph.ancestors(name) == {other for other in graph.order if name in graph.descendants(other)}
        assert graph.ancestors(name) == set(graph[name].parents).union(*map(graph.ancestors, graph[name].parents))


@settings(deadline=None)
@given(legal_graphs())
def test_random_graphs_stay_within_bounds(graph: Graph) -> None:
    def depth(name: str) -> int:
        return 1 + max(map(depth, graph[name].parents)) if graph[name].parents else 0

    assert len(graph.views) <= VIEWS and len(graph.groups) <= GROUPS
    assert all(depth(name) <= DEPTH for name in graph.order)


def test_around_one_view() -> None:
    assert FIGURE_1.ancestors("V8") == {"B1", "B2", "B3", "V1", "V7"}
    assert FIGURE_1.descendants("V7") == {"V8", "V9", "V10", "V11", "V12"}
    assert FIGURE_1.children("V1") == ("V2", "V3", "V7")
    assert [table.name for table in FIGURE_1.tables] == ["B1", "B2", "B3", "B4"]
    assert len(FIGURE_1.views) == 12
    assert "V8" in FIGURE_1 and "V99" not in FIGURE_1


def test_a_node_takes_the_place_of_the_one_of_its_name() -> None:
    changed = FIGURE_1.with_node(View("V10", ("V7",), Maintain.SNAPSHOT, ("far",)))
    assert changed["V10"].parents == ("V7",)
    assert len(changed.nodes) == len(FIGURE_1.nodes)
    assert "V13" in FIGURE_1.with_node(View("V13", ("B1",)))


@pytest.mark.parametrize("maintain", [Maintain.IMMEDIATE, Maintain.DEFERRED])
def test_only_snapshot_views_have_a_cycle(maintain: Maintain) -> None:
    with pytest.raises(BadDefinition, match=f"{maintain} view v has no refresh cycle"):
        View("v", ("t",), maintain, (), DAILY)


def test_a_parent_named_twice_is_one_parent() -> None:
    assert View("v", ("t", "u", "t")).parents == ("t", "u")


WRONG: dict[str, tuple[tuple[Node, ...], tuple[Group, ...], type[MatviewError], str]] = {
    "itself": ((View("a", ("a",)),), (), CyclicViews, "a reads a"),
    "two": ((View("a", ("b",)), View("b", ("a",))), (), CyclicViews, "a reads b reads a|b reads a reads b"),
    "three": (
        (View("a", ("t", "b")), BaseTable("t"), View("b", ("c",)), View("c", ("a",))),
        (),
        CyclicViews,
        "a reads b reads c reads a|b reads c reads a reads b|c reads a reads b reads c",
    ),
    "a missing table": ((View("a", ("t", "u")), BaseTable("t")), (), UnknownTable, "a reads u"),
    "a name twice": ((BaseTable("t"), View("T", ("t",))), (), TableExists, "T"),
    "a group twice": ((), (Group("g"), Group("G")), ViewgroupExists, "viewgroup G is there already"),
    "the base group": ((), (Group("Base"),), ViewgroupExists, "viewgroup Base is built in"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_graph(case: str) -> None:
    nodes, groups, kind, words = WRONG[case]
    with pytest.raises(kind, match=words) as refused:
        Graph(nodes, groups)
    assert refused.value.help
