"""A view against its query computed anew: what is maintained must equal what would be computed.

A view shows the state that it has taken over, its effective state, and that is what it must equal. What its tables have
become since is undone from their logs, which are kept until every view has passed.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from matview.algebra.nodes import (
    WEIGHT,
    Change,
    Node,
    Project,
    Scan,
    Stored,
    transform,
)
from matview.algebra.rough import may_be_rough
from matview.algebra.scalars import call, column
from matview.algebra.schema import Field, Schema
from matview.catalog.records import LogEntry, TableRecord, VersionState
from matview.delta.signed import difference, kept
from matview.errors import MaintenanceBusy
from matview.maintain.change.given import Given
from matview.maintain.definitions import Lookup, whole
from matview.maintain.named import unknown_view, view_names
from matview.maintain.remote.connections import Connections
from matview.maintain.remote.tables import Remote, fetched
from matview.maintain.views.earlier import earlier
from matview.maintain.views.last_digits import TOLERANCE, but_for_last_digits
from matview.spark.errors import translated
from matview.sql.parse import parse_one
from matview.sql.render import plain_name
from matview.sql.render import query as rendered
from matview.sql.statements import Query
from matview.storage.engine import named_table, relation, relation_name
from matview.storage.query import Found, run_query
from matview.storage.runtime import Runtime
from matview.versions.references import rewrite_query
from matview.versions.text import quoted

Against = Literal["effective", "newest"]
"""Which state of the tables: the one that the view has taken over, or the newest."""


TRIES = 5


def difference_of(runtime: Runtime, connections: Connections, view: str, against: Against = "effective") -> DataFrame:
    """Hidden parts left aside: rows with a `weight` (`__weight` if the view has such a column), none if all is well.
    They are computed here: how a plan of renamed columns is made, is for us to say.

    Tables that stay at their sources are asked for in the state of the newest version. Should a round be installed
    meanwhile, there is a newer one, and all of it is asked for again.
    """
    for _ in range(TRIES):
        state, record, waiting = _of_one_moment(runtime, view)
        stored = runtime.catalog.views.get(record.id)
        assert stored is not None
        statement = parse_one(stored.query)
        assert isinstance(statement, Query)
        remote = Remote.of(runtime, connections, secrets.token_hex(6))
        comparing = _Comparing(runtime, remote, state, waiting if against == "effective" else {})
        with translated("comparing a view with its query"), runtime.engine.for_changes(few=False):
            found = comparing.of(record, statement.query)
        if not comparing.has_asked or runtime.catalog.version().current_vn == state.current_vn:
            return found
    raise MaintenanceBusy(
        f"{view} cannot be compared: versions come faster than its sources answer",
        help="try again when fewer rounds are installed",
    )


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
    remote: Remote
    state: VersionState
    waiting: Mapping[int, tuple[LogEntry, ...]]
    bound: dict[str, DataFrame] = field(default_factory=dict)
    has_asked: bool = False

    def of(self, record: TableRecord, query: exp.Expr) -> DataFrame:
        names = record.schema.visible
        lookup = Lookup(self.runtime.engine, self._named, self._run, frozenset(self.remote.sites))
        node = whole(lookup, query, names)
        held = Scan(record.name, names, tuple(Field(name) for name in names))
        weight = WEIGHT if "weight" in map(str.casefold, names) else "weight"
        shown = Project(
            difference(_comparable(node, record), _comparable(held, record)), (*kept(names), (weight, column(WEIGHT)))
        )
        return but_for_last_digits(self._rows(self._brought(shown), {}).localCheckpoint(), weight, _rough(node, record))

    def _brought(self, node: Node) -> Node:
        """Tables that stay at their sources become answers; those that have changed since are taken back from there."""
        if not self.remote.reads(node):
            return node
        self.has_asked = True
        node = transform(node, self._before)
        found, answers = self.remote.brought(node, self.remote.where({}, {}, frozenset()), frozenset(), self._fetched)
        self.bound |= {name: given.rows for name, given in answers.items()}
        return found

    def _before(self, node: Node) -> Node:
        """A table that stays at its source and has changed since, as it was."""
        if not isinstance(node, Scan) or node.table not in self.remote.sites:
            return node
        record = self.runtime.record(named_table(node.table), self.state.current_vn)
        entries = self.waiting.get(record.id)
        if not entries:
            return node
        table = self.runtime.tables.table(record, self.state.versions)
        names = record.schema.visible
        whole = Scan(node.table, names, tuple(Field(c.name, c.type) for c in record.schema.columns))
        now, answers = self.remote.brought(whole, self.remote.where({}, {}, frozenset()), frozenset(), self._fetched)
        before = earlier(table, self._rows(now, answers), entries)
        made = relation_name()
        self.bound[made] = before.select(
            *(F.col(quoted(c)).alias(f.name) for c, f in zip(node.columns, node.fields, strict=True))
        )
        return Stored(made, node.fields)

    def _fetched(self, node: Node, answers: Mapping[str, Given]) -> pa.Table:
        return fetched(self._rows(node, answers))

    def _rows(self, node: Node, answers: Mapping[str, Given]) -> DataFrame:
        """The rows of an expression over tables as the view has taken them over, and over answers."""

        def name(leaf: Scan | Change | Stored) -> exp.Table:
            return relation(leaf.view) if isinstance(leaf, Stored) else plain_name(leaf)

        asked: exp.Expr = rendered(node, name)
        own = {name: given.rows for name, given in answers.items()}
        if self.waiting:
            asked = rewrite_query(asked, lambda reference: self._as_taken_over(reference, own))
        return self._run(asked, own)

    def _as_taken_over(self, reference: exp.Table, answers: Mapping[str, DataFrame]) -> exp.Expr:
        if reference.name in self.bound or reference.name in answers:
            return relation(reference.name)
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


def _comparable(node: Node, record: TableRecord) -> Node:
    """Variants, which cannot be compared, as their text."""
    kinds = {c.name: c.type.casefold() for c in record.schema.columns}
    if not any("variant" in kinds[name] for name in node.names):
        return node
    return Project(
        node, tuple((n, call("to_json", column(n)) if "variant" in kinds[n] else column(n)) for n in node.names)
    )


def _rough(node: Node, record: TableRecord) -> dict[str, str]:
    """The columns, with their types, that may differ in their last digits."""
    kinds = {c.name: c.type.casefold() for c in record.schema.columns}
    return {name: kinds[name] for name in node.names if kinds[name] in TOLERANCE and may_be_rough(node, name)}
