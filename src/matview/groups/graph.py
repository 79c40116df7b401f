"""The view-dependency graph (Definition 2.1): tables and views as nodes, each view with the tables that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from matview.errors import BadDefinition, CyclicViews, TableExists, UnknownTable, ViewgroupExists
from matview.groups.schedule import OnDemand, Schedule

BASE = "base"
"""The built-in viewgroup of all base tables."""


class Maintain(StrEnum):
    """The policy of a view: with each update, when it is queried, or together with its group."""

    IMMEDIATE = "immediate"
    DEFERRED = "deferred"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class BaseTable:
    """A table that is no view; `declared` are the viewgroups that somebody asked for."""

    name: str
    declared: tuple[str, ...] = ()

    @property
    def parents(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class View:
    """A materialized view: what it reads, its policy, the viewgroups and the refresh cycle declared for it, if any."""

    name: str
    parents: tuple[str, ...]
    maintain: Maintain = Maintain.SNAPSHOT
    declared: tuple[str, ...] = ()
    cycle: Schedule | None = None

    def __post_init__(self) -> None:
        if self.cycle is not None and self.maintain is not Maintain.SNAPSHOT:
            raise BadDefinition(
                f"{self.maintain} view {self.name} has no refresh cycle: only snapshot views have",
                help="leave the schedule out, or write MAINTAIN SNAPSHOT",
            )
        object.__setattr__(self, "parents", tuple(dict.fromkeys(self.parents)))
        object.__setattr__(self, "declared", tuple(dict.fromkeys(self.declared)))


Node = BaseTable | View


@dataclass(frozen=True, slots=True)
class Group:
    """A viewgroup: all its snapshot views are refreshed together, by one schedule."""

    name: str
    schedule: Schedule = field(default_factory=OnDemand)


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and declared viewgroups; `order` has every node after those that it reads, `views` every view so.

    Names are told apart without regard to case, and a name that is read must be there as it is spelt.
    """

    nodes: tuple[Node, ...]
    groups: tuple[Group, ...] = ()
    order: tuple[str, ...] = field(init=False, repr=False, compare=False)
    views: tuple[View, ...] = field(init=False, repr=False, compare=False)
    _nodes: Mapping[str, Node] = field(init=False, repr=False, compare=False)
    _children: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _refuse_twice(self.nodes, self.groups)
        by_name = {node.name: node for node in self.nodes}
        _refuse_unknown(self.nodes, by_name)
        children: dict[str, list[str]] = {name: [] for name in by_name}
        for node in self.nodes:
            for parent in node.parents:
                children[parent].append(node.name)
        object.__setattr__(self, "_nodes", by_name)
        object.__setattr__(self, "_children", {name: tuple(found) for name, found in children.items()})
        object.__setattr__(self, "order", _ordered(self.nodes))
        in_order = (by_name[name] for name in self.order)
        object.__setattr__(self, "views", tuple(node for node in in_order if isinstance(node, View)))

    def __getitem__(self, name: str) -> Node:
        return self._nodes[name]

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    @property
    def tables(self) -> tuple[BaseTable, ...]:
        return tuple(node for node in self.nodes if isinstance(node, BaseTable))

    def children(self, name: str) -> tuple[str, ...]:
        """The views that read a node."""
        return self._children[name]

    def ancestors(self, name: str) -> frozenset[str]:
        """All that a node is derived from."""
        return _reached(self[name].parents, lambda found: self[found].parents)

    def descendants(self, name: str) -> frozenset[str]:
        """All views that are derived from a node."""
        return _reached(self.children(name), self.children)

    def with_node(self, node: Node) -> Graph:
        """The same graph with a node in place of the one of its name, or added."""
        if node.name not in self:
            return replace(self, nodes=(*self.nodes, node))
        return replace(self, nodes=tuple(node if n.name == node.name else n for n in self.nodes))


def _reached(begin: Iterable[str], following: Callable[[str], Iterable[str]]) -> frozenset[str]:
    found: set[str] = set()
    waiting = list(begin)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(following(name))
    return frozenset(found)


def _refuse_twice(nodes: Iterable[Node], groups: Iterable[Group]) -> None:
    seen: set[str] = set()
    for node in nodes:
        if node.name.casefold() in seen:
            raise TableExists(f"there are two of the name {node.name}")
        seen.add(node.name.casefold())
    known = {BASE}
    for group in groups:
        if group.name.casefold() in known:
            what = "is built in" if group.name.casefold() == BASE else "is there already"
            raise ViewgroupExists(f"viewgroup {group.name} {what}")
        known.add(group.name.casefold())


def _refuse_unknown(nodes: Iterable[Node], by_name: Mapping[str, Node]) -> None:
    for node in nodes:
        missing = [parent for parent in node.parents if parent not in by_name]
        if missing:
            raise UnknownTable(f"{node.name} reads {', '.join(missing)}, which is not there")


def _ordered(nodes: Iterable[Node]) -> tuple[str, ...]:
    try:
        return tuple(TopologicalSorter({node.name: node.parents for node in nodes}).static_order())
    except CycleError as error:
        readers = reversed(error.args[1])
        raise CyclicViews(f"views cannot read themselves: {' reads '.join(readers)}") from None
