"""From the text of a view to what is stored for it; needs names and types, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from sqlglot import exp

from matview.algebra.nodes import Node, Opaque, Project, Scan, walk
from matview.algebra.passes import normalised
from matview.algebra.scalars import column
from matview.algebra.schema import Field, Schema
from matview.errors import BadDefinition, MatviewError, NotIncremental, QueryRejected, TypeMismatch
from matview.groups.assign import Assignment
from matview.plan.definition import Part, parts_of, refuse_if_whole
from matview.plan.united import united
from matview.remembered import Remembered
from matview.spark.types import type_text
from matview.sql.lower import lower
from matview.sql.parse import parse_one
from matview.sql.render import query as rendered
from matview.sql.statements import Query, RefreshPolicy
from matview.storage.engine import Engine, relation, relation_name
from matview.versions.references import table_references

Run = Callable[[exp.Expr, Mapping[str, DataFrame]], DataFrame]
"""Runs a query over the tables; the names of the mapping are relations in hand."""


@dataclass(frozen=True)
class Lookup:
    """What a name stands for, as a transaction or a reader sees it: the table's own name, and its schema."""

    engine: Engine
    table: Callable[[exp.Table], tuple[str, Schema]]
    query: Run
    remote: frozenset[str] = frozenset()
    """The tables that stay at their sources."""

    def schema(self, reference: exp.Table) -> Schema:
        """What queries see of a table or view."""
        _, schema = self.table(reference)
        shown = tuple(c for c in schema.columns if not c.hidden)
        key = schema.key if set(schema.key) <= set(schema.visible) else ()
        return Schema(shown, key)


Defined = tuple[tuple[Part, ...], str | None]
"""What is stored for a view, and why it cannot be maintained from changes, if so."""

REMEMBERED = 500


class Definitions:
    """What a process remembers of views.

    What was found out about a view's text once holds as long as the text and the tables it reads stay the same. The
    first refresh by a strategy compiles code that later ones use: its time says nothing about theirs.
    """

    def __init__(self) -> None:
        self._known = Remembered[Defined](REMEMBERED)
        self._parsed = Remembered[exp.Expr](REMEMBERED)
        self._warm: set[tuple[str, str]] = set()
        self._assigned: tuple[int, Assignment] | None = None

    def is_warm(self, name: str, strategy: str) -> bool:
        """The part has been refreshed by that strategy before, in this process; from now on it has."""
        known = (name, strategy) in self._warm
        self._warm.add((name, strategy))
        return known

    def assignment(self, number: int, made: Callable[[], Assignment]) -> Assignment:
        """The viewgroups and the order of views, made anew only when definitions have changed: `number` says so."""
        known = self._assigned
        if known is None or known[0] != number:
            known = self._assigned = number, made()
        return known[1]

    def of(self, lookup: Lookup, name: str, text: str, columns: tuple[str, ...], policy: RefreshPolicy) -> Defined:
        query = self._parsed.get(text, lambda: _query(text))
        tables = tuple(sorted({lookup.table(r) for r in table_references(query)}, key=lambda t: t[0]))
        known = (name, text, columns, policy, tables)
        return self._known.get(known, lambda: defined(lookup, name, query.copy(), columns, policy))


def _query(text: str) -> exp.Expr:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    return statement.query


def defined(lookup: Lookup, name: str, query: exp.Expr, columns: tuple[str, ...], policy: RefreshPolicy) -> Defined:
    """A query that no rule maintains is stored as Spark computes it, unless the policy is 'strict'."""
    try:
        node = _lowered(lookup, query)
        refuse_if_whole(node)
        return _parts(lookup, name, node, columns), None
    except _NO_RULE as error:
        if policy == "strict":
            raise
        _refuse_remote(lookup, query, error)
        return _parts(lookup, name, _instead(lookup, query, error), columns), str(error)


_NO_RULE = (NotIncremental, TypeMismatch, QueryRejected)
"""There is no rule, or Spark does not take what a rule makes of the query (the least of some maps, say)."""


def _parts(lookup: Lookup, name: str, node: Node, columns: tuple[str, ...]) -> tuple[Part, ...]:
    return parts_of(name, _named(node, columns), lambda node: typing(lookup.engine, node))


def _instead(lookup: Lookup, query: exp.Expr, error: MatviewError) -> Opaque:
    """The query as it was written; if Spark does not take that either, the error stands."""
    try:
        return _opaque(lookup, query)
    except _NO_RULE:
        raise error from None


def _lowered(lookup: Lookup, query: exp.Expr) -> Node:
    return normalised(united(lower(query, lookup.schema), lambda node: typing(lookup.engine, node)))


def _refuse_remote(lookup: Lookup, query: exp.Expr, error: MatviewError) -> None:
    """A query that no rule understands can be computed here alone, from whole tables: none of them may be elsewhere."""
    elsewhere = sorted({lookup.table(reference)[0] for reference in table_references(query)} & lookup.remote)
    if elsewhere:
        raise NotIncremental(
            f"{error.what}; and {', '.join(elsewhere)} would be read whole each time, but stays at its source",
            where=error.where,
            help=f"{error.help}; or add the source anew with replicas of its tables",
        )


def whole(lookup: Lookup, query: exp.Expr, columns: tuple[str, ...]) -> Node:
    """A view's query as one expression over tables, nothing of it stored."""
    try:
        node = _named(_lowered(lookup, query), columns)
        typing(lookup.engine, node)
    except _NO_RULE as error:
        return _named(_instead(lookup, query, error), columns)
    return node


def _opaque(lookup: Lookup, query: exp.Expr) -> Opaque:
    shown = lookup.query(query, {}).schema.fields
    fields = tuple(Field(f.name, type_text(f.dataType), f.nullable) for f in shown)
    names = {lookup.table(reference)[0] for reference in table_references(query)}
    return Opaque(query, fields, frozenset(names))


def _named(node: Node, columns: tuple[str, ...]) -> Node:
    """The view's own names for its columns, if it gives any."""
    if not columns or columns == node.names:
        return node
    if len(columns) != len(node.names):
        raise BadDefinition(f"the view names {len(columns)} columns, its query gives {len(node.names)}")
    return normalised(Project(node, tuple((new, column(old)) for new, old in zip(columns, node.names, strict=True))))


def typing(engine: Engine, node: Node) -> tuple[Field, ...]:
    """The columns of a node with the types that Spark gives them; nothing is run."""
    if any(isinstance(leaf, Opaque) for leaf in walk(node)):
        return node.fields
    names = {leaf: relation_name() for leaf in walk(node) if isinstance(leaf, Scan)}
    frames = {name: engine.empty(_typed_columns(leaf)) for leaf, name in names.items()}
    made = engine.sql(rendered(node, lambda leaf: relation(names[leaf])), frames)  # type: ignore[index]
    pairs = zip(node.fields, made.schema.fields, strict=True)
    return tuple(Field(own.name, type_text(sparks.dataType), own.nullable) for own, sparks in pairs)


def _typed_columns(scan: Scan) -> list[tuple[str, str]]:
    return [(c, f.type) for c, f in zip(scan.columns, scan.fields, strict=True)]
