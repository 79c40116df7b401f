"""What a maintenance transaction gives to those who work inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from matview.algebra.schema import Schema
from matview.catalog.graph import graph_of
from matview.catalog.records import Edge, GroupRecord, RefreshRecord, ViewRecord
from matview.catalog.source_records import SourceChanges
from matview.groups.assign import Assignment, assigned
from matview.groups.graph import Graph
from matview.maintain.definitions import Definitions, Lookup, Run
from matview.maintain.remote.tables import Remote
from matview.maintain.tables import WorkingTables
from matview.storage.runtime import Runtime


@dataclass
class Notes:
    """What the transaction will tell the catalog beside its tables: views, edges, viewgroups, what refreshes cost."""

    views: dict[int, ViewRecord] = field(default_factory=dict)
    edges: dict[tuple[int, int], Edge] = field(default_factory=dict)
    seen: dict[tuple[int, int], int] = field(default_factory=dict)
    """How many statements of this transaction had changed the parent when the child was last refreshed in it."""
    refreshes: list[RefreshRecord] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    defined: int = 0
    """How many statements have made, altered or dropped something."""
    redefined: set[str] = field(default_factory=set)
    """The views that were made, or are something else than before."""
    declared: dict[str, GroupRecord] | None = None
    """The viewgroups by folded name, once a statement is about them."""
    renamed: list[tuple[str, str]] = field(default_factory=list)
    refreshed: set[str] = field(default_factory=set)
    """The viewgroups that show this version."""
    sources: SourceChanges = field(default_factory=SourceChanges)
    graph: tuple[int, Graph] | None = None
    assignment: tuple[int, Assignment] | None = None


@dataclass(frozen=True)
class Context:
    """The transaction's version, its tables, and a way to run queries over them."""

    runtime: Runtime
    version: int
    tables: WorkingTables
    notes: Notes
    query: Run
    definitions: Definitions
    remote: Remote

    @property
    def lookup(self) -> Lookup:
        def table(reference: exp.Table) -> tuple[str, Schema]:
            found = self.tables.find(reference).table
            return found.name, found.schema

        return Lookup(self.runtime.engine, table, self.query, frozenset(self.remote.sites))

    # viewgroups -------------------------------------------------------------------------------------------------------

    @property
    def committed(self) -> Assignment:
        """The viewgroups as they were when the transaction began; computed anew only when somebody has changed them."""
        number = self.tables.fresh.defined_vn
        return self.definitions.assignment(number, lambda: assigned(self.runtime.catalog.groups.graph()))

    @property
    def assignment(self) -> Assignment:
        """The viewgroups as the transaction has them by now, legal or not."""
        if not self.notes.defined:
            return self.committed
        known = self.notes.assignment
        if known is None or known[0] != self.notes.defined:
            known = self.notes.assignment = self.notes.defined, assigned(self.graph)
        return known[1]

    @property
    def graph(self) -> Graph:
        """Tables and views as the transaction has them by now."""
        if not self.notes.defined:
            return self.committed.graph
        known = self.notes.graph
        if known is None or known[0] != self.notes.defined:
            known = self.notes.graph = self.notes.defined, self._built()
        return known[1]

    def _built(self) -> Graph:
        live = self.runtime.catalog.tables.live(self.version)
        views = {**self.tables.views, **self.notes.views}
        edges = {**self.tables.edges, **self.notes.edges}
        return graph_of(self.tables.renewed({t.id: t.name for t in live}), views, edges, self.declared.values())

    @property
    def declared(self) -> Mapping[str, GroupRecord]:
        """The viewgroups that somebody made, by folded name."""
        if self.notes.declared is None:
            return {group.name.casefold(): group for group in self.runtime.catalog.groups.declared()}
        return self.notes.declared

    def note_definition(self, *views: str) -> None:
        """Something was made, altered or dropped; these views are something else than before."""
        self.notes.defined += 1
        self.notes.redefined.update(views)
