"""What a refresh would do, without doing it: the same plan, from the catalog's newest version."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from sqlglot import exp

from matview.algebra.schema import Schema
from matview.catalog.records import TableRecord, ViewRecord, remote_of
from matview.catalog.source_records import SourceRecord
from matview.errors import UnknownTable
from matview.maintain.definitions import Lookup, Run, defined
from matview.maintain.named import unknown_view, view_names
from matview.maintain.views.pending import Pending, pending
from matview.plan.choice import Situation, with_remote
from matview.plan.cost import TableFacts, staying
from matview.plan.definition import Part
from matview.plan.explain import Elsewhere, Explained, Reading, explain
from matview.plan.sites import Where, located
from matview.sources import dialect_of
from matview.sources.sayable import sayable
from matview.sql import statements as st
from matview.sql.parse import parse_one
from matview.storage.runtime import Runtime
from matview.storage.snapshot import Snapshot

SUPPOSED_SHARE = 0.001


def explained(runtime: Runtime, view: st.CreateView | str, query: Run) -> str:
    """The plan of a view that is there, for the changes that wait; or of one to be, for a change that is supposed."""
    return _Explaining(runtime, query).text(view)


class _Explaining:
    def __init__(self, runtime: Runtime, query: Run) -> None:
        self._runtime = runtime
        self._version = runtime.catalog.version()
        self._views, edges = runtime.catalog.views.graph()
        self._edges = {(e.parent_id, e.child_id): e.consumed for e in edges}
        self._elsewhere = _elsewhere(runtime.catalog.sources.list())
        self._lookup = Lookup(runtime.engine, self._table, query, frozenset(self._elsewhere.at))

    def text(self, view: st.CreateView | str) -> str:
        if isinstance(view, st.CreateView):
            parts, reason = defined(self._lookup, view.name, view.query, view.columns, view.policy)
            return explain([self._supposed(part, view.policy, reason) for part in parts], self._elsewhere)
        record, stored = self._view(view)
        statement = parse_one(stored.query)
        assert isinstance(statement, st.Query)
        parts, reason = defined(self._lookup, record.name, statement.query, record.schema.visible, stored.policy)
        return explain([self._waiting(part, stored, reason) for part in parts], self._elsewhere)

    def _view(self, name: str) -> tuple[TableRecord, ViewRecord]:
        catalog, version = self._runtime.catalog, self._version.current_vn
        record = catalog.tables.find(name, version)
        if record is None or record.id not in self._views:
            raise unknown_view(name, view_names(catalog, version), is_table=record is not None)
        return record, self._views[record.id]

    def _record(self, name: str) -> TableRecord:
        reference = exp.Table(this=exp.to_identifier(name, quoted=True))
        return self._runtime.record(reference, self._version.current_vn)

    def _table(self, reference: exp.Table) -> tuple[str, Schema]:
        record = self._runtime.record(reference, self._version.current_vn)
        return record.name, record.schema

    def _snapshot(self, record: TableRecord) -> Snapshot:
        return self._runtime.tables.table(record, self._version.versions).log.load()

    def _waiting(self, part: Part, view: ViewRecord, reason: str | None) -> Explained:
        """For what has changed since the part was refreshed; supposing some change if nothing has."""
        own = self._record(part.name)
        waits = {}
        for name in part.reads:
            parent = self._record(name)
            consumed = self._edges.get((parent.id, own.id), self._version.current_vn)
            waiting = pending(self._runtime.catalog.views.log(parent.id, consumed))
            waits[name] = waiting if waiting.matters(part.columns_read.get(name)) else pending(())
        if not any(p.entries for p in waits.values()):
            return self._supposed(part, view.policy, reason)
        tables = {name: waiting.beside(self._facts(name)) for name, waiting in waits.items()}
        past = self._runtime.catalog.views.refreshes(part.name)[part.name]
        situation = Situation(tables, self._facts(part.name), self._policy(part, view.policy), past)
        readings = {name: self._reading(name, waits[name]) for name in part.reads}
        return Explained(part, situation, readings, self._where(situation, situation.changed), reason=reason)

    def _supposed(self, part: Part, policy: st.RefreshPolicy, reason: str | None) -> Explained:
        known = {name: self._facts(name) for name in part.reads}
        tables = {
            name: replace(facts, changed=max(1, int(facts.rows * SUPPOSED_SHARE)), only_inserts=False)
            for name, facts in known.items()
        }
        situation = Situation(tables, TableFacts(0, 0), self._policy(part, policy))
        readings = {name: self._reading(name) for name in part.reads}
        return Explained(part, situation, readings, self._where(situation), supposed=True, reason=reason)

    def _where(self, situation: Situation, here: Collection[str] = ()) -> Where:
        """As a refresh would have it; sites have no more of changes that have waited."""
        rows = {name: facts.rows for name, facts in situation.tables.items()}
        changed = {name: facts.changed for name, facts in situation.tables.items()}
        return located(self._elsewhere.at, sayable, rows, changed, here)

    def _policy(self, part: Part, policy: st.RefreshPolicy) -> st.RefreshPolicy:
        return with_remote(policy, remote=any(name in self._elsewhere.at for name in part.reads))

    def _facts(self, name: str) -> TableFacts:
        try:
            record = self._record(name)
            source, rows = remote_of(record)
            if source is not None:
                return staying(rows)
            files = self._snapshot(record).files
        except UnknownTable:  # a hidden part of a view to be
            return TableFacts(1000, 10_000)
        return TableFacts(sum(f.rows for f in files), sum(f.size for f in files))

    def _reading(self, name: str, waiting: Pending | None = None) -> Reading:
        try:
            files = self._snapshot(self._record(name)).files
        except UnknownTable:
            return Reading(0, 0)
        return Reading(len(files), sum(f.size for f in files), len(waiting.files) if waiting else 0)


def _elsewhere(sources: Iterable[SourceRecord]) -> Elsewhere:
    """The tables that stay at their sources; nobody is asked for that."""
    staying_there = [(s, t) for s in sources for t in s.tables if not t.replicate and t.table_id is not None]
    return Elsewhere(
        {table.table: source.name for source, table in staying_there},
        {table.table: table.name for _, table in staying_there},
        {source.name: dialect_of(source.url) for source, _ in staying_there},
    )
