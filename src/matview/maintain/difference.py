"""A view against its query computed anew: what is maintained must equal what would be computed.

A view shows the state that it has taken over, its effective state, and that is what it must equal. What its tables have
become since is undone from their logs, which are kept until every view has passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import DataFrame
from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Project, Scan
from matview.algebra.scalars import column
from matview.algebra.schema import Field, Schema
from matview.catalog.records import LogEntry, TableRecord, VersionState
from matview.delta.signed import difference, kept
from matview.maintain.definitions import Lookup, whole
from matview.maintain.earlier import earlier
from matview.maintain.named import unknown_view, view_names
from matview.sql.parse import parse_one
from matview.sql.render import query as rendered
from matview.sql.statements import Query
from matview.storage.engine import named_table, relation, relation_name
from matview.storage.query import Found, run_query
from matview.storage.runtime import Runtime
from matview.versions.references import rewrite_query

Against = Literal["effective", "newest"]
"""Which state of the tables: the one that the view has taken over, or the newest."""


def difference_of(runtime: Runtime, view: str, against: Against = "effective") -> DataFrame:
    """Hidden parts left aside: rows with a `weight` (`__weight` if the view has such a column), none if all is well."""
    state, record, waiting = _of_one_moment(runtime, view)
    stored = runtime.catalog.views.get(record.id)
    assert stored is not None
    statement = parse_one(stored.query)
    assert isinstance(statement, Query)
    return _Comparing(runtime, state, waiting if against == "effective" else {}).of(record, statement.query)


def _of_one_moment(runtime: Runtime, view: str) -> tuple[VersionState, TableRecord, Mapping[int, tuple[LogEntry, ...]]]:
    """The newest version, the view at it, and what the tables that it reads have told since it was refreshed."""
    while True:
        state = runtime.catalog.version()
        record = runtime.catalog.tables.find(view, state.current_vn)
        if record is None or runtime.catalog.views.get(record.id) is None:
            raise unknown_view(view, view_names(runtime.catalog, state.current_vn), is_table=record is not None)
        version, waiting = runtime.catalog.views.waiting(record.id)
        if version == state.current_vn:
            return state, record, waiting


@dataclass
class _Comparing:
    """Queries over the tables of one version; those that wait to be taken over are read as they were."""

    runtime: Runtime
    state: VersionState
    waiting: Mapping[int, tuple[LogEntry, ...]]
    bound: dict[str, DataFrame] = field(default_factory=dict)

    def of(self, record: TableRecord, query: exp.Expr) -> DataFrame:
        names = record.schema.visible
        lookup = Lookup(self.runtime.engine, self._named, self._run)
        node = whole(lookup, query, names)
        held = Scan(record.name, names, tuple(Field(name) for name in names))
        weight = WEIGHT if "weight" in map(str.casefold, names) else "weight"
        shown = Project(difference(node, held), (*kept(names), (weight, column(WEIGHT))))
        asked = rendered(shown)
        return self._run(rewrite_query(asked, self._as_taken_over) if self.waiting else asked, {})

    def _as_taken_over(self, reference: exp.Table) -> exp.Expr:
        record = self.runtime.record(reference, self.state.current_vn)
        entries = self.waiting.get(record.id)
        if not entries:
            return named_table(record.name)
        made = relation_name()
        now = self._run(exp.select("*").from_(named_table(record.name)), {})
        self.bound[made] = earlier(self._find(reference).table, now, entries)
        return relation(made)

    def _find(self, reference: exp.Table) -> Found:
        record = self.runtime.record(reference, self.state.current_vn)
        table = self.runtime.tables.table(record, self.state.versions)
        return Found(table, table.log.load())

    def _named(self, reference: exp.Table) -> tuple[str, Schema]:
        record = self.runtime.record(reference, self.state.current_vn)
        return record.name, record.schema

    def _run(self, query: exp.Expr, bound: Mapping[str, DataFrame]) -> DataFrame:
        named = {table.name for table in query.find_all(exp.Table)}
        relations = {name: rows for name, rows in {**self.bound, **bound}.items() if name in named}
        return run_query(self.runtime.engine, query, self._find, self.state.current_vn, bound=relations)
