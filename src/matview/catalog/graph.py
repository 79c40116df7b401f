"""The view-dependency graph, from what the catalog or a transaction knows of tables, views and edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matview.catalog.records import GroupRecord, ViewRecord
from matview.groups.graph import BaseTable, Graph, Group, Node, View
from matview.groups.schedule import parse


def graph_of(
    names: Mapping[int, str],
    views: Mapping[int, ViewRecord],
    edges: Iterable[tuple[int, int]],
    groups: Iterable[GroupRecord],
) -> Graph:
    """Nodes for the tables that `names` has, by id; a hidden part belongs to the view that it serves."""

    def owner(table_id: int) -> int:
        view = views.get(table_id)
        return table_id if view is None or view.owner_id is None else view.owner_id

    parents: dict[int, list[str]] = {}
    for parent, child in sorted(edges):
        above, below = owner(parent), owner(child)
        if above != below and above in names and below in names:
            parents.setdefault(below, []).append(names[above])
    shown = [table_id for table_id in sorted(names) if owner(table_id) == table_id]
    nodes = [_node(names[table_id], views.get(table_id), parents.get(table_id, [])) for table_id in shown]
    return Graph(tuple(nodes), tuple(Group(group.name, parse(group.schedule)) for group in groups))


def _node(name: str, view: ViewRecord | None, parents: list[str]) -> Node:
    if view is None:
        return BaseTable(name)
    declared = () if view.viewgroup is None else (view.viewgroup,)
    cycle = None if view.schedule is None else parse(view.schedule)
    return View(name, tuple(parents), view.maintain, declared, cycle)
