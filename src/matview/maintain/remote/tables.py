"""Tables that stay at their sources, in the state that one transaction sees: after every round that is installed, and
after the one that is being installed.

What an expression needs of them is asked of the sources (M3, M4), each in its own words and in that state (formula 3 of
the paper): whatever commits there meanwhile is not in the answer, and asking again gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from matview.algebra.nodes import Change, Node, Scan, Stored, parts
from matview.algebra.schema import Field
from matview.catalog.described import described
from matview.catalog.source_records import SourceRecord, SourceTableRecord
from matview.errors import MatviewError, SourceDrifted
from matview.groups.edits import quoted
from matview.maintain.change.given import Given
from matview.maintain.remote.answers import Answers, Asked
from matview.maintain.remote.connections import Connections
from matview.maintain.remote.sendable import can_be_sent
from matview.plan.sites import MOST_SENT, Ask, Question, Where, cut, located, question, stages
from matview.plan.sites.together import NUMBER, sent_columns
from matview.remembered import cached_property
from matview.sources.engine import NOTHING, Taken
from matview.sources.sayable import sayable
from matview.sources.state import CHANGES_OF
from matview.sources.types import arrow_type
from matview.spark.errors import translated
from matview.sql.render import spelled_out
from matview.storage.few import arrow_schema
from matview.storage.runtime import Runtime

SENT_CHANGES = "__changes_"
T = TypeVar("T")

Compute = Callable[[Node, Mapping[str, Given]], pa.Table]
"""The rows of an expression that reads no table of a source, on the driver; the names are those of answers."""


@dataclass(frozen=True)
class Remote:
    """The tables that stay at sources, by their names in the warehouse, and the state in which they are asked for."""

    runtime: Runtime
    connections: Connections
    answers: Answers
    taken: dict[str, Taken]
    """The set of each source, by its id, that is being installed."""

    @classmethod
    def of(cls, runtime: Runtime, connections: Connections, token: str) -> Remote:
        return cls(runtime, connections, Answers(runtime, token), {})

    @cached_property
    def tables(self) -> dict[str, tuple[SourceRecord, SourceTableRecord]]:
        return {
            table.table: (source, table)
            for source in self._known.values()
            for table in source.tables
            if not table.replicate and table.table_id is not None
        }

    @cached_property
    def sites(self) -> dict[str, str]:
        """The sources at which tables are, by the tables' names."""
        return {name: source.name for name, (source, _) in self.tables.items()}

    @cached_property
    def _known(self) -> dict[str, SourceRecord]:
        known = self.runtime.catalog.sources.list()
        return {source.name: source for source in known if source.state == "active"}

    def besides(self, source: SourceRecord) -> list[Taken]:
        """The sets that are installed, and perhaps not acknowledged yet."""
        installed = (one for one in self.runtime.catalog.rounds.pending() if one.state == "installed")
        parts = (part for one in installed for part in one.parts if part.source_id == source.id)
        return [part.taken for part in parts if not part.acknowledged]

    def reads(self, node: Node) -> bool:
        return bool(self.sites) and any(isinstance(leaf, Scan) and leaf.table in self.sites for leaf in parts(node))

    # asking -----------------------------------------------------------------------------------------------------------

    def where(self, rows: Mapping[str, int], changed: Mapping[str, int], here: frozenset[str]) -> Where:
        return located(self.sites, sayable, rows, changed, here)

    def brought(
        self, node: Node, where: Where, here: frozenset[str], compute: Compute
    ) -> tuple[Node, dict[str, Given]]:
        """The expression over what the sources have answered, and the answers.

        `here` are the tables whose changes are to be sent along, since the source's own delta tables do not have just
        them. Where more would be sent than the driver should hold, nothing is: the tables come here instead.
        """
        try:
            return self._brought(node, where, here, compute)
        except TooMany:
            return self._brought(node, where.sending_nothing(here), here, compute)

    def _brought(
        self, node: Node, where: Where, here: frozenset[str], compute: Compute
    ) -> tuple[Node, dict[str, Given]]:
        found = cut(node, where)
        answers: dict[str, Given] = {}
        for stage in stages(found.asks):
            questions = [self._prepared(site, asks, here, answers, compute) for site, asks in stage]
            for made in _side_by_side(self._answered, questions):
                answers |= made
        return found.node, answers

    def _prepared(
        self, site: str, asks: Sequence[Ask], here: frozenset[str], answers: Mapping[str, Given], compute: Compute
    ) -> _Question:
        """The query of a site, and what is sent along, computed here."""
        source = self._known[site]
        leaves = [leaf for ask in asks for leaf in parts(ask.node) if isinstance(leaf, Change)]
        sent = {name: _sent(compute(node, answers)) for ask in asks for name, node in ask.sent}
        for leaf in leaves:
            if leaf.scan.table in here and SENT_CHANGES + leaf.scan.table not in sent:
                table = _all_columns(leaf.scan, self.tables[leaf.scan.table][1])
                sent[SENT_CHANGES + leaf.scan.table] = _ordered(compute(Change(table), answers))
        made = question(asks)
        tree = spelled_out(made.node, lambda leaf: self._name(leaf, here))
        return _Question(source, tuple(asks), made, tree, sent)

    def _name(self, leaf: Scan | Change | Stored, here: frozenset[str]) -> exp.Table:
        """What a relation is called at the source."""
        match leaf:
            case Change(scan) if scan.table in here:
                name = SENT_CHANGES + scan.table
            case Change(scan):
                name = CHANGES_OF + self.tables[scan.table][1].name
            case Scan(table) if table in self.tables:
                name = self.tables[table][1].name
            case Scan(table):
                name = table
            case Stored(view):
                name = view
        return exp.Table(this=exp.to_identifier(name, quoted=True))

    def _answered(self, asked: _Question) -> dict[str, Given]:
        source = asked.source
        self._refuse_stopped(asked)
        taken = self.taken.get(source.id, NOTHING)
        tables = [described(self.tables[name][1]) for name in asked.reads if name in self.tables]

        def ask() -> Asked:
            besides = self.besides(source)
            return self.connections.of(source).evaluate(asked.query, tables, taken, asked.sent, besides)

        known = [source.id, source.captured_at, dict(taken), asked.query.sql("spark")]
        try:
            whole = self.answers.of(known, asked.schema, asked.sent, ask)
        except MatviewError:
            self.connections.drop(source.id)
            raise
        return {
            one.name: self.answers.part(whole, number if asked.made.is_numbered else None, columns, one.node.fields)
            for number, (one, columns) in enumerate(zip(asked.asks, asked.made.columns, strict=True))
        }

    def _refuse_stopped(self, asked: _Question) -> None:
        for name in asked.reads:
            if name in self.tables and (error := self.tables[name][1].error) is not None:
                raise SourceDrifted(
                    f"{name} of source {asked.source.name} is stopped: {error.split('] ', 1)[-1].splitlines()[0]}",
                    help=f"`matview source check {quoted(asked.source.name)}` says what to do",
                )


@dataclass(frozen=True)
class _Question:
    """What a source is asked, in its own words and with the relations that are sent along."""

    source: SourceRecord
    asks: tuple[Ask, ...]
    made: Question
    query: exp.Query
    sent: Mapping[str, pa.Table]

    @property
    def reads(self) -> list[str]:
        """The tables, by their names in the warehouse."""
        leaves = [leaf.scan if isinstance(leaf, Change) else leaf for ask in self.asks for leaf in parts(ask.node)]
        return list(dict.fromkeys(leaf.table for leaf in leaves if isinstance(leaf, Scan)))

    @property
    def schema(self) -> pa.Schema:
        """Of what comes back."""
        number = [pa.field(NUMBER, pa.int32())] if self.made.is_numbered else []
        names = [name for own in self.made.columns for name in own]
        fields = [field for ask in self.asks for field in ask.node.fields]
        return pa.schema([*number, *(pa.field(n, arrow_type(f.type)) for n, f in zip(names, fields, strict=True))])


def _all_columns(scan: Scan, table: SourceTableRecord) -> Scan:
    """The table with all its columns, under their own names."""
    kinds = {column.name: column.type for column in table.columns}
    fields = tuple(Field(name, kind) for name, kind in kinds.items())
    return Scan(scan.table, tuple(kinds), fields)


class TooMany(Exception):
    """Rows that were to be sent along are more than the driver should hold."""


def fetched(rows: DataFrame) -> pa.Table:
    """Rows on the driver, in the types that travel; raises if they are too many."""
    schema = arrow_schema(rows.schema)
    with translated("computing what a source is sent"):
        found = no_more_than_sent(rows.limit(MOST_SENT + 1).toArrow())
    return found if schema is None else found.cast(schema)


def no_more_than_sent(rows: pa.Table) -> pa.Table:
    if rows.num_rows > MOST_SENT:
        raise TooMany
    return rows


def _sent(rows: pa.Table) -> pa.Table:
    """Keys as they are sent: without those that no source has, since no driver has a value for them."""
    for name in rows.column_names:
        rows = rows.filter(can_be_sent(rows[name]))
    return _ordered(rows.rename_columns(list(sent_columns(rows.num_columns))))


def _ordered(rows: pa.Table) -> pa.Table:
    """In the same order whenever they are the same."""
    plain = [name for name in rows.column_names if not pa.types.is_nested(rows.schema.field(name).type)]
    return rows.sort_by([(name, "ascending") for name in plain]) if plain else rows


def _side_by_side(work: Callable[[_Question], T], questions: Sequence[_Question]) -> list[T]:
    if len(questions) < 2:
        return [work(one) for one in questions]
    with ThreadPoolExecutor(len(questions), "matview-ask") as pool:
        return list(pool.map(work, questions))
