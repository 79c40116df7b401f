"""What is defined: tables, views and viewgroups as plain data, whoever keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from matview.algebra.schema import Schema
from matview.groups.graph import BaseTable, Graph, Maintain, Node
from matview.groups.graph import Group as GraphGroup
from matview.groups.graph import View as GraphView
from matview.groups.schedule import Schedule
from matview.sql.statements import RefreshPolicy


@dataclass(frozen=True, slots=True)
class Table:
    """A base table as CREATE TABLE says it."""

    name: str
    schema: Schema
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    kind: ClassVar[Literal["table"]] = "table"

    @property
    def shown(self) -> Schema:
        return self.schema

    @property
    def node(self) -> Node:
        return BaseTable(self.name)


@dataclass(frozen=True, slots=True)
class View:
    """A materialized view as CREATE MATERIALIZED VIEW says it, with what it reads.

    `shown` is what queries see of it, None where only Spark can tell; `reason` why it is computed anew each time.
    """

    name: str
    text: str
    reads: tuple[str, ...]
    shown: Schema | None
    policy: RefreshPolicy = "auto"
    maintain: Maintain = Maintain.SNAPSHOT
    group: str | None = None
    schedule: Schedule | None = None
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    kind: ClassVar[Literal["view"]] = "view"

    @property
    def node(self) -> GraphView:
        declared = () if self.group is None else (self.group,)
        return GraphView(self.name, self.reads, self.maintain, declared, self.schedule)


@dataclass(frozen=True, slots=True)
class Group:
    """A viewgroup as CREATE VIEWGROUP says it."""

    name: str
    schedule: Schedule
    comment: str | None = None


@dataclass(frozen=True)
class Inventory:
    """All of them by folded name, in the order in which they were made."""

    relations: Mapping[str, Table | View] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)

    @classmethod
    def of(cls, relations: Iterable[Table | View], groups: Iterable[Group] = ()) -> Inventory:
        return cls({r.name.casefold(): r for r in relations}, {g.name.casefold(): g for g in groups})

    def relation(self, name: str) -> Table | View | None:
        return self.relations.get(name.casefold())

    def group(self, name: str) -> Group | None:
        return self.groups.get(name.casefold())

    def put(self, relation: Table | View) -> Inventory:
        """With this one, in place of that of its name."""
        return replace(self, relations={**self.relations, relation.name.casefold(): relation})

    def without(self, names: Iterable[str]) -> Inventory:
        gone = {name.casefold() for name in names}
        return replace(self, relations={key: r for key, r in self.relations.items() if key not in gone})

    def put_group(self, group: Group) -> Inventory:
        return replace(self, groups={**self.groups, group.name.casefold(): group})

    def without_group(self, name: str) -> Inventory:
        return replace(self, groups={key: g for key, g in self.groups.items() if key != name.casefold()})

    def graph(self) -> Graph:
        """The view-dependency graph."""
        nodes = tuple(relation.node for relation in self.relations.values())
        return Graph(nodes, tuple(GraphGroup(group.name, group.schedule) for group in self.groups.values()))
