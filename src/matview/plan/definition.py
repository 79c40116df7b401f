"""From a view's query to what is stored: the view, and before it hidden ones for the aggregates inside it.

An aggregate that stands inside a query would have to be computed twice at each refresh, as it is and as it was. Stored
by itself, a summary is maintained like any other, and the query around it reads a table that tells its changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.keys import key_of
from matview.algebra.nodes import Aggregate, Node, Opaque, Project, Scan, Window, rebuilt, tables, walk
from matview.algebra.scalars import column
from matview.algebra.schema import Column, Field, Schema
from matview.delta.signed import kept
from matview.errors import NotIncremental
from matview.plan.summary import Summary, Typing, summary_of
from matview.remembered import cached_property
from matview.sql.pieces import place_of


@dataclass(frozen=True)
class Part:
    """One stored relation: `node` gives what it shows, over tables and parts before it."""

    name: str
    node: Node
    schema: Schema
    summary: Summary | None = None

    @cached_property
    def reads(self) -> frozenset[str]:
        return tables(self.node)

    @cached_property
    def columns_read(self) -> dict[str, set[str]]:
        """The columns that it reads of each table; a table that is not there is read in ways unknown."""
        read: dict[str, set[str]] = {}
        for leaf in walk(self.node):
            if isinstance(leaf, Scan):
                read.setdefault(leaf.table, set()).update(leaf.columns)
        return read

    @property
    def is_opaque(self) -> bool:
        """No rule understands it."""
        return any(isinstance(node, Opaque) for node in walk(self.node))

    @property
    def has_net_changes(self) -> bool:
        """Equal rows of a change can be added up: Spark does not tell which variants are equal."""
        return self.summary is not None or not any("variant" in c.type for c in self.schema.columns)

    @property
    def full(self) -> Node:
        """All stored columns, computed from the whole of the tables."""
        return self.node if self.summary is None else self.summary.computed(self.summary.aggregate.input)


def parts_of(view: str, node: Node, typing: Typing) -> tuple[Part, ...]:
    """The view itself is the last."""
    return _Cutting(view, typing).parts(node)


class _Cutting:
    def __init__(self, view: str, typing: Typing) -> None:
        self._view = view
        self._typing = typing
        self._parts: list[Part] = []

    def parts(self, node: Node) -> tuple[Part, ...]:
        aggregate, outputs = _summary_at(node)
        if aggregate is None:
            self._add(self._view, self._without_aggregates(node))
        else:
            inner = rebuilt(aggregate, (self._without_aggregates(aggregate.input),))
            assert isinstance(inner, Aggregate)
            self._add(self._view, Project(inner, outputs))
        return tuple(self._parts)

    def _without_aggregates(self, node: Node) -> Node:
        """Each aggregate under the node becomes a table of its own."""
        made = rebuilt(node, tuple(self._without_aggregates(part) for part in node.inputs))
        return self._stored(made) if isinstance(made, Aggregate) else made

    def _stored(self, aggregate: Aggregate) -> Scan:
        name = f"__{self._view}__{len(self._parts) + 1}"
        columns = tuple(f"c{i}" for i in range(1, len(aggregate.names) + 1))
        shown = tuple((new, column(old)) for new, old in zip(columns, aggregate.names, strict=True))
        part = self._add(name, Project(aggregate, shown))
        types = {c.name: c.type for c in part.schema.columns}
        fields = tuple(Field(f.name, types[c], f.nullable) for f, c in zip(aggregate.fields, columns, strict=True))
        return Scan(name, columns, fields, aggregate.keys)

    def _add(self, name: str, node: Node) -> Part:
        part = part_of(name, node, self._typing)
        self._parts.append(part)
        return part


def refuse_if_whole(node: Node) -> None:
    """A window over everything has to be computed over everything at each change."""
    for part in walk(node):
        if isinstance(part, Window) and not part.partition:
            function = part.functions[0][1]
            raise NotIncremental(
                f"`{function.this.sql('spark')}` over a window without PARTITION BY concerns every row at each change",
                where=place_of(function),
                help="add PARTITION BY, or use ORDER BY ... LIMIT; REFRESH POLICY AUTO computes such a view anew",
            )


def part_of(name: str, node: Node, typing: Typing) -> Part:
    aggregate, outputs = _summary_at(node)
    if aggregate is None:
        shown = typing(node)
        columns = tuple(Column(f.name, f.type, f.nullable) for f in shown)
        return Part(name, node, Schema(columns, _stored_key(node, columns)))
    summary = summary_of(aggregate, outputs, typing)
    types = {f.name: f for f in typing(summary.computed(aggregate.input))}
    visible = {name for name, _ in outputs}
    _refuse_nested_keys([types[key] for key in summary.keys])
    stored = tuple(Column(c, types[c].type, types[c].nullable, c not in visible) for c in summary.stored)
    return Part(name, node, Schema(stored, summary.keys), summary)


def _summary_at(node: Node) -> tuple[Aggregate | None, tuple[tuple[str, exp.Expr], ...]]:
    """The aggregate that the node is, and the columns it shows of it."""
    match node:
        case Aggregate():
            return node, kept(node.names)
        case Project(Aggregate() as aggregate, outputs):
            return aggregate, outputs
    return None, ()


def _stored_key(node: Node, columns: Sequence[Column]) -> tuple[str, ...]:
    """What tells rows apart; a relation of at most one row has all its columns for a key: it is a bag all the same.

    A key of nested type cannot be stored as one, so that is a bag, too.
    """
    key = key_of(node) or ()
    return () if any(c.name in key and _is_nested(c.type) for c in columns) else key


def _refuse_nested_keys(keys: Sequence[Field]) -> None:
    """The groups of a summary are found by their stored key."""
    for key in keys:
        if _is_nested(key.type):
            raise NotIncremental(
                f"groups, or distinct rows, are told apart by a {key.type}, by which no stored row is found",
                help="group by fields or elements of it; REFRESH POLICY AUTO computes such a view anew",
            )


def _is_nested(kind: str) -> bool:
    return kind.startswith(("array<", "map<", "struct<", "variant"))
