"""The tables of one maintenance transaction: those it has looked at, made and dropped."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from matview.algebra.schema import Column, Schema
from matview.catalog.records import Lease, NewTable
from matview.errors import BadDefinition, TableExists, UnknownTable
from matview.maintain.change.working import Counts, Working
from matview.maintain.named import unknown_view, view_names
from matview.remembered import cached_property
from matview.spark.types import type_text
from matview.storage.runtime import Runtime
from matview.storage.snapshot import Snapshot


class WorkingTables:
    """By name, as the transaction sees them; what it dropped is kept until the commit."""

    def __init__(self, runtime: Runtime, lease: Lease, version: int) -> None:
        self._runtime = runtime
        self._lease = lease
        self._version = version
        self._versions = runtime.catalog.version().versions
        self.fresh = runtime.catalog.views.freshness()
        """How far every view had come when the transaction began."""
        self.views = self.fresh.views
        self.edges = {(edge.parent_id, edge.child_id): edge for edge in self.fresh.edges}
        """What views read, as committed."""
        self._live: dict[str, Working] = {}
        self._dropped: list[Working] = []

    @cached_property
    def stale(self) -> frozenset[int]:
        """The deferred views that had not taken over everything when the transaction began."""
        return self.fresh.stale()

    def __iter__(self) -> Iterator[Working]:
        yield from list(self._live.values())  # views that are refreshed side by side may add to them
        yield from self._dropped

    def __getitem__(self, name: str) -> Working:
        return self.find(exp.Table(this=exp.to_identifier(name, quoted=True)))

    def __contains__(self, name: str) -> bool:
        try:
            return self[name] is not None
        except UnknownTable:
            return False

    def view(self, name: str, groups: Iterable[str] | None = None) -> Working:
        """The materialized view of that name; UnknownTable says which there are, and the viewgroups that would do."""
        there = self._was_dropped(name) or name in self
        if there and (working := self[name]).view is not None and working.view.owner_id is None:
            return working
        made = (w.table.name for w in self._live.values() if w.view is not None and w.view.owner_id is None)
        committed = (view for view in view_names(self._runtime.catalog, self._version) if not self._was_dropped(view))
        raise unknown_view(name, {*made, *committed}, is_table=there, groups=groups)

    def _was_dropped(self, name: str) -> bool:
        return name.casefold() not in self._live and any(
            w.table.name.casefold() == name.casefold() for w in self._dropped
        )

    def find(self, reference: exp.Table) -> Working:
        """The table of that name; UnknownTable if there is none, or none any more."""
        known = self._live.get(reference.name.casefold())
        if known is not None and not reference.db:
            return known
        if self._was_dropped(reference.name) and not reference.db:
            raise UnknownTable(f"this transaction has dropped {reference.name!r}", help="create it anew, or roll back")
        record = self._runtime.record(reference, self._version)
        table = self._runtime.tables.table(record, self._versions)
        made = Working(table, record.next_rid, self._version, self._lease.token, view=self.views.get(record.id))
        made.source = self.fresh.fed.get(record.id)
        made.logged = self._is_read(record.id)
        self._live[reference.name.casefold()] = made
        return made

    def create(self, name: str, schema: Schema, properties: Mapping[str, object]) -> Working:
        """A new table, which is there from the commit on; the name may be that of one dropped before."""
        if name in self:
            raise _taken(self[name])
        new = NewTable(
            self._runtime.catalog.tables.reserve(self._lease),
            name,
            storable(self._runtime, schema),
            f"tables/{_slug(name)}-{secrets.token_hex(4)}",
            properties,
        )
        table = self._runtime.tables.table(new, self._versions)
        working = Working(table, 0, self._version, self._lease.token, created=new)
        working.snapshot = Snapshot(-1, 0, ())
        self._live[name.casefold()] = working
        return working

    def replace(self, old: Working) -> Working:
        """An empty table in place of another, of the same name, schema and meaning: readers of before keep the old."""
        properties = self.properties(old)
        self.drop(old.table.name)
        new = self.create(old.table.name, old.table.schema, properties)
        if old.view is not None:
            new.view = replace(old.view, table_id=new.table.id)
        return new

    def properties(self, working: Working) -> dict[str, object]:
        """What was said of a table beside its columns."""
        said = working.created or self._runtime.catalog.tables.by_id(working.table.id)
        return dict(said.properties) if said else {}

    def owned(self, view_id: int) -> list[Working]:
        """The hidden views that serve a view."""
        ids = [view.table_id for view in self.views.values() if view.owner_id == view_id]
        dropped = {w.table.id for w in self._dropped}
        records = [self._runtime.catalog.tables.by_id(table_id) for table_id in ids if table_id not in dropped]
        for record in records:
            if record is not None and record.dropped_vn is None:
                self[record.name]  # looked at, so that it is among those below
        return [w for w in list(self._live.values()) if w.view is not None and w.view.owner_id == view_id]

    def renewed(self, names: Mapping[int, str]) -> dict[int, str]:
        """The names of tables by id, with what this transaction has made and without what it has dropped."""
        dropped = {w.table.id for w in self._dropped}
        made = {w.table.id: w.table.name for w in self._live.values() if w.created}
        return {table_id: name for table_id, name in names.items() if table_id not in dropped} | made

    def by_id(self, table_id: int) -> Working | None:
        """The table of that id, if the transaction has looked at it."""
        return next((w for w in self if w.table.id == table_id), None)

    def saved(self) -> Callable[[], None]:
        """Puts all back as it is now; what is first looked at meanwhile is as it was committed."""
        live, dropped, known = dict(self._live), list(self._dropped), {w.table.id: w.saved() for w in self}

        def restore() -> None:
            later = [w for w in self if w.table.id not in known and not w.created]
            for working in later:
                self._as_committed(working)
            self._live, self._dropped = {w.table.name.casefold(): w for w in later} | live, dropped
            for put_back in known.values():
                put_back()

        return restore

    def _as_committed(self, working: Working) -> None:
        working.replaced += working.staged
        working.staged, working.counts, working.touched = (), Counts(), frozenset()
        working.dropped = working.renewed = False
        working.view = self.views.get(working.table.id)
        working.logged = self._is_read(working.table.id)

    def _is_read(self, table_id: int) -> bool:
        return any(parent == table_id for parent, _ in self.edges)

    def drop(self, name: str) -> Working:
        working = self[name]
        working.dropped = True
        self._dropped.append(self._live.pop(name.casefold()))
        return working


def _taken(there: Working) -> TableExists:
    name = there.table.name
    if there.view is None:
        return TableExists(f"there is a table {name!r} already")
    return TableExists(
        f"there is a materialized view {name!r} already",
        help="choose another name, DROP MATERIALIZED VIEW first, or write CREATE MATERIALIZED VIEW IF NOT EXISTS",
    )


def storable(runtime: Runtime, schema: Schema) -> Schema:
    """The schema in Spark's own spelling of types; what cannot be stored or compared is refused."""
    struct = runtime.engine.struct([(c.name, c.type) for c in schema.columns])
    columns = []
    for column in schema.columns:
        plain = type_text(struct[column.name].dataType)
        sized = re.match(r"^(var)?char\(", column.type.lower().replace(" ", ""))
        _check_storable(column, plain, schema)
        columns.append(Column(column.name, column.type.lower() if sized else plain, column.nullable, column.hidden))
    return Schema(tuple(columns), schema.key)


def _check_storable(column: Column, plain: str, schema: Schema) -> None:
    if "void" in plain:
        raise BadDefinition(f"column {column.name!r}: a table cannot store the type {plain}", help="CAST it to a type")
    if column.name in schema.key and re.match(r"^(map|array|struct|variant)", plain):
        raise BadDefinition(f"key column {column.name!r}: {plain} cannot be a key", help="use an atomic type")
    if schema.is_bag and "variant" in plain:
        raise BadDefinition(f"column {column.name!r}: variant needs a table with a primary key")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", name.lower())[:40].strip("_") or "table"
