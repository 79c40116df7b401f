"""Random legal view graphs, and random histories on them: up to 12 views, 4 viewgroups beside the base, depth 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from matview.groups.assign import Assignment
from matview.groups.graph import BASE, BaseTable, Graph, Group, Maintain, Node, View
from matview.groups.history import Event, GroupRefresh, Queried, Update

VIEWS, GROUPS, DEPTH, TABLES, PARENTS = 12, 4, 5, 4, 3
Draw = Callable[[st.SearchStrategy[Any]], Any]


class _Growing:
    """A legal graph so far: nodes with their groups and depths; groups form a tree with the base group as its root."""

    def __init__(self, tables: int, parent_of: dict[str, str]) -> None:
        self.nodes: dict[str, Node] = {f"t{i}": BaseTable(f"t{i}") for i in range(tables)}
        self.group_of = dict.fromkeys(self.nodes, BASE)
        self.depth = dict.fromkeys(self.nodes, 0)
        self.parent_of = parent_of

    def readable(self, maintain: Maintain, group: str) -> list[str]:
        """What a view of that policy in that group may read."""
        return [name for name in self.nodes if self.depth[name] < DEPTH and self._may_read(maintain, group, name)]

    def _may_read(self, maintain: Maintain, group: str, name: str) -> bool:
        own, node = self.group_of[name], self.nodes[name]
        policy = node.maintain if isinstance(node, View) else Maintain.IMMEDIATE
        match maintain:
            case Maintain.IMMEDIATE:
                return own == BASE and policy is Maintain.IMMEDIATE
            case Maintain.DEFERRED:
                return own == group
            case Maintain.SNAPSHOT:
                return own in (group, self.parent_of[group]) and policy is not Maintain.DEFERRED

    def add(self, maintain: Maintain, group: str, parents: tuple[str, ...]) -> None:
        name = f"v{len(self.nodes)}"
        declared = (group,) if maintain is Maintain.SNAPSHOT else ()
        self.nodes[name] = View(name, parents, maintain, declared)
        self.group_of[name] = group
        self.depth[name] = 1 + max(self.depth[parent] for parent in parents)


@st.composite
def legal_graphs(draw: Draw, views: int = VIEWS) -> Graph:
    """Made legal by what each view may read; that Rules 1 to 9 agree is for a test to say."""
    names = [f"g{i}" for i in range(draw(st.integers(0, GROUPS)))]
    parent_of = {name: draw(st.sampled_from([BASE, *names[:i]])) for i, name in enumerate(names)}
    made = _Growing(draw(st.integers(1, TABLES)), parent_of)
    for _ in range(draw(st.integers(0, views))):
        maintain = draw(st.sampled_from(Maintain))
        if maintain is Maintain.SNAPSHOT and not names:
            continue
        own = names if maintain is Maintain.SNAPSHOT else [BASE, *names]
        group = BASE if maintain is Maintain.IMMEDIATE else draw(st.sampled_from(own))
        readable = made.readable(maintain, group)
        if readable:
            parents = draw(st.lists(st.sampled_from(readable), min_size=1, max_size=PARENTS, unique=True))
            made.add(maintain, group, tuple(parents))
    return Graph(tuple(made.nodes.values()), tuple(Group(name) for name in names))


def events(assignment: Assignment) -> st.SearchStrategy[Event]:
    """Updates of one or several tables, queries of anything, refreshes of groups that have views."""
    names = sorted(table.name for table in assignment.graph.tables)
    groups = sorted({*assignment.group_of.values()} - {BASE})
    updates = st.lists(st.sampled_from(names), min_size=1, unique=True).map(lambda found: Update(tuple(found)))
    choices: list[st.SearchStrategy[Event]] = [updates, st.sampled_from(assignment.graph.order).map(Queried)]
    if groups:
        choices.append(st.sampled_from(groups).map(GroupRefresh))
    return st.one_of(choices)


def histories(assignment: Assignment, most: int = 25) -> st.SearchStrategy[list[Event]]:
    return st.lists(events(assignment), max_size=most)


@st.composite
def perturbed(draw: Draw) -> Graph:
    """A legal graph in which one to three views have another policy, another group, or a parent more."""
    graph = draw(legal_graphs().filter(lambda graph: bool(graph.views)))
    for _ in range(draw(st.integers(1, 3))):
        view = draw(st.sampled_from(graph.views))
        graph = graph.with_node(draw(_perturbations(graph, view)))
    return graph


def _perturbations(graph: Graph, view: View) -> st.SearchStrategy[View]:
    groups = [BASE, *(group.name for group in graph.groups)]
    free = [name for name in graph.order if name not in graph.descendants(view.name) | {view.name}]
    return st.one_of(
        st.sampled_from(Maintain).map(lambda maintain: replace(view, maintain=maintain)),
        st.sampled_from(Maintain).map(lambda maintain: replace(view, maintain=maintain, declared=())),
        st.sampled_from(groups).map(lambda group: replace(view, declared=(group,))),
        st.sampled_from(free).map(lambda name: replace(view, parents=(*view.parents, name))),
    )
