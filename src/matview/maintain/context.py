"""What a maintenance transaction gives to those who work inside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from matview.algebra.schema import Schema
from matview.catalog.records import Edge, RefreshRecord, ViewRecord
from matview.maintain.definitions import Definitions, Lookup, Run
from matview.maintain.tables import WorkingTables
from matview.storage.runtime import Runtime


@dataclass
class Notes:
    """What the transaction will tell the catalog beside its tables: views, edges, what refreshes cost."""

    views: dict[int, ViewRecord] = field(default_factory=dict)
    edges: dict[tuple[int, int], Edge] = field(default_factory=dict)
    seen: dict[tuple[int, int], int] = field(default_factory=dict)
    """How many statements of this transaction had changed the parent when the child was last refreshed in it."""
    refreshes: list[RefreshRecord] = field(default_factory=list)
    done: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """The transaction's version, its tables, and a way to run queries over them."""

    runtime: Runtime
    version: int
    tables: WorkingTables
    notes: Notes
    query: Run
    definitions: Definitions

    @property
    def lookup(self) -> Lookup:
        def table(reference: exp.Table) -> tuple[str, Schema]:
            found = self.tables.find(reference).table
            return found.name, found.schema

        return Lookup(self.runtime.engine, table, self.query)
