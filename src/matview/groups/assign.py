"""Which viewgroup each node belongs to: what is declared counts, the rest is settled by the system (section 2.4).

base table                  the built-in group `base`, all of them (Rule 9)
immediate, deferred view    its parents' group (Rule 2)
snapshot view               the group declared for it; otherwise one of its own, named after it, refreshed as the view
                            itself says, or on demand. One that reads base tables beside views of one other group could
                            not have its own (Rule 5): it joins that group

An assignment need not be legal: `rules` says whether it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from matview.errors import UnknownViewgroup, ViewgroupExists
from matview.groups.graph import BASE, BaseTable, Graph, Group, Maintain, Node, View
from matview.groups.schedule import OnDemand


@dataclass(frozen=True, slots=True)
class Assignment:
    """A graph with the viewgroup of each node; `groups` has the declared ones, `base`, and those of single views."""

    graph: Graph
    groups: Mapping[str, Group]
    group_of: Mapping[str, str]
    _members: Mapping[str, list[str]] = field(init=False, repr=False, compare=False)
    _spelt: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_spelt", {name.casefold(): name for name in self.groups})
        members: dict[str, list[str]] = {}
        for name in self.graph.order:
            members.setdefault(self.group_of[name], []).append(name)
        object.__setattr__(self, "_members", members)

    def members(self, group: str) -> tuple[str, ...]:
        """The nodes of a group, each after those that it reads."""
        return tuple(self._members.get(group, ()))

    def partition(self) -> dict[str, frozenset[str]]:
        """Every group that has nodes, with its nodes; a node that was declared for several groups is in each."""
        found: dict[str, set[str]] = {}
        for node in self.graph.nodes:
            for group in self.named(node) or (self.group_of[node.name],):
                found.setdefault(group, set()).add(node.name)
        return {group: frozenset(names) for group, names in found.items()}

    def named(self, node: Node) -> tuple[str, ...]:
        """The groups that are declared for a node, by the names that they have."""
        return tuple(dict.fromkeys(self._spelt.get(name.casefold(), name) for name in node.declared))

    def derived_from(self, group: str) -> tuple[str, ...]:
        """The other groups that the views of a group read; `base` for a view that reads nothing, such as a constant."""
        read = [self._read_by(name) for name in self.members(group)]
        found = {other for groups in read for other in groups if other != group}
        return tuple(sorted(found, key=lambda name: (name != BASE, name)))

    def _read_by(self, name: str) -> tuple[str, ...]:
        node = self.graph[name]
        if isinstance(node, View) and not node.parents:
            return (BASE,)
        return tuple(self.group_of[parent] for parent in node.parents)

    def parent(self, group: str) -> str:
        """The one group that a group is derived from, if the assignment is legal; `base` is its own."""
        return next(iter(self.derived_from(group)), BASE)

    def views_of(self, *policies: Maintain) -> tuple[View, ...]:
        """All views of these policies, each after those that it reads."""
        return tuple(view for view in self.graph.views if view.maintain in policies)


def assigned(graph: Graph) -> Assignment:
    """Every node with its group; a name that is no group is an error."""
    settling = _Settling(graph)
    for name in graph.order:
        settling.settle(graph[name])
    return Assignment(graph, settling.groups, settling.group_of)


class _Settling:
    """Goes through the nodes, parents first."""

    def __init__(self, graph: Graph) -> None:
        self.groups = {group.name: group for group in (Group(BASE), *graph.groups)}
        self.group_of: dict[str, str] = {}
        declared = {name.casefold(): name for name in self.groups}
        own = [view for view in graph.views if _may_have_its_own(view, declared)]
        self._names = {view.name.casefold(): view.name for view in own} | declared
        self._asked_for = {name.casefold() for node in graph.nodes for name in node.declared}

    def settle(self, node: Node) -> None:
        group = self._declared(node) or self._default(node)
        if isinstance(node, View) and group == node.name and group not in self.groups:
            self.groups[group] = Group(group, node.cycle or OnDemand())
        self.group_of[node.name] = group

    def _declared(self, node: Node) -> str | None:
        found = [self._names.get(name.casefold()) for name in node.declared]
        for name, known in zip(node.declared, found, strict=True):
            if known is None:
                raise UnknownViewgroup(f"{node.name} is to be in viewgroup {name}, which is not there")
        return found[0] if found else None

    def _default(self, node: Node) -> str:
        if isinstance(node, BaseTable):
            return BASE
        read = dict.fromkeys(self.group_of[parent] for parent in node.parents)
        others = [group for group in read if group != BASE]
        if node.maintain is not Maintain.SNAPSHOT:
            return others[0] if others else BASE
        if BASE in read and len(others) == 1 and node.name.casefold() not in self._asked_for:
            return others[0]
        return self._own(node)

    def _own(self, view: View) -> str:
        if self._names[view.name.casefold()] in self.groups:
            raise ViewgroupExists(
                f"view {view.name} is in no viewgroup, and one of its own would be called as viewgroup {view.name} is",
                help=f"say IN VIEWGROUP {view.name} if that one is meant, or name another",
            )
        return view.name


def _may_have_its_own(view: View, declared: Mapping[str, str]) -> bool:
    """A snapshot view that is declared for no group, or for the one named after it, which nobody else has made."""
    asked = tuple(name.casefold() for name in view.declared)
    folded = view.name.casefold()
    return view.maintain is Maintain.SNAPSHOT and (not asked or (asked == (folded,) and folded not in declared))
