"""Relational expressions over bags: frozen nodes that refuse to be wrong.

A relation's columns are named once in a whole query (`sales.city`, and `sales_2.city` for a second use of the table),
so no node needs qualifiers: a join's columns are those of its inputs together. Scalar expressions are sqlglot's, with
columns as bare quoted identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from sqlglot import exp

from matview.algebra.scalars import columns_in, nullable, type_of
from matview.algebra.schema import Field

WEIGHT = "__weight"
"""The column of a change that says how often a row comes (positive) or goes (negative)."""

OLD_SUFFIX, UPDATES = "~old", "__updates"
"""A change may tell an update as one row: old values stand in columns of this suffix, and 1 in `__updates`."""


class BadNode(ValueError):
    """A node that cannot be: a mistake in this program, never in a user's text."""


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise BadNode(what)


class _Relation:
    """What all nodes have: fields, inputs, and a way to be rebuilt from other inputs."""

    fields: tuple[Field, ...]

    def __init_subclass__(cls) -> None:
        """Trees share their parts, so a node is hashed once, not as often as there are ways to it."""
        cls.__hash__ = _Relation._remembered_hash  # type: ignore[assignment]

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__match_args__)))  # type: ignore[attr-defined]

    def _remembered_hash(self) -> int:
        return self._hash

    @cached_property
    def names(self) -> tuple[str, ...]:
        return _names(self)  # type: ignore[arg-type]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def field(self, name: str) -> Field:
        return next(f for f in self.fields if f.name == name)

    def _require_columns(self, expressions: Iterable[exp.Expr], given: Iterable[Node]) -> None:
        known = {name for node in given for name in node.names}
        for expression in expressions:
            if missing := columns_in(expression) - known:
                raise BadNode(f"{expression.sql('spark')}: no column {sorted(missing)}, only {sorted(known)}")


# leaves ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scan(_Relation):
    """A table in its new state. `columns` are its own names, `fields` what they are called here."""

    table: str
    columns: tuple[str, ...]
    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()
    """Fields that tell rows apart; empty for a bag."""

    def __post_init__(self) -> None:
        _require(len(self.columns) == len(self.fields), "as many columns as fields")
        _require(set(self.key) <= set(self.names), "a key of its own fields")


@dataclass(frozen=True)
class Change(_Relation):
    """How a table changes: the rows of `scan` that come and go, with their weights."""

    scan: Scan

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.scan.fields, Field(WEIGHT, "bigint", nullable=False))


@dataclass(frozen=True)
class Stored(_Relation):
    """What a view holds before it is refreshed, hidden columns included."""

    view: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Values(_Relation):
    """Rows written out; no rows at all is the empty relation, one row without fields is the unit of the product."""

    fields: tuple[Field, ...]
    rows: tuple[tuple[exp.Expr, ...], ...]

    def __post_init__(self) -> None:
        _require(all(len(row) == len(self.fields) for row in self.rows), "every row has a value for every field")


@dataclass(frozen=True)
class Opaque(_Relation):
    """A query that no rule understands, as it was written: it can be computed, not maintained."""

    query: exp.Expr
    fields: tuple[Field, ...]
    reads: frozenset[str]


# one input ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filter(_Relation):
    input: Node
    condition: exp.Expr

    def __post_init__(self) -> None:
        self._require_columns([self.condition], [self.input])

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.input.fields

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Project(_Relation):
    """New columns from old ones, duplicates kept."""

    input: Node
    outputs: tuple[tuple[str, exp.Expr], ...]

    def __post_init__(self) -> None:
        self._require_columns([e for _, e in self.outputs], [self.input])
        _require_distinct(name for name, _ in self.outputs)

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        given = {f.name: f for f in self.input.fields}
        return tuple(Field(name, type_of(e, given), nullable(e, given)) for name, e in self.outputs)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Aggregate(_Relation):
    """Groups by columns; without any there is one group, even over nothing. No aggregates: duplicate elimination."""

    input: Node
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, exp.Expr], ...] = ()

    def __post_init__(self) -> None:
        self._require_columns([e for _, e in self.aggregates], [self.input])
        _require(set(self.keys) <= set(self.input.names), f"group by columns of the input, not {self.keys}")
        _require_distinct([*self.keys, *(name for name, _ in self.aggregates)])
        _require(bool(self.keys or self.aggregates), "an aggregate of something")

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        given = {f.name: f for f in self.input.fields}
        made = (Field(name, type_of(e, given), nullable(e, given)) for name, e in self.aggregates)
        return (*(given[name] for name in self.keys), *made)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Window(_Relation):
    """The input's rows, each with the values of window functions, all over the same partitions."""

    input: Node
    partition: tuple[str, ...]
    functions: tuple[tuple[str, exp.Expr], ...]

    def __post_init__(self) -> None:
        self._require_columns([e for _, e in self.functions], [self.input])
        _require(set(self.partition) <= set(self.input.names), "partition by columns of the input")
        _require_distinct([*self.input.names, *(name for name, _ in self.functions)])

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        given = {f.name: f for f in self.input.fields}
        return (*self.input.fields, *(Field(name, type_of(e, given), True) for name, e in self.functions))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class TopK(_Relation):
    """The first `limit` rows after `offset` others in an order that leaves no ties but between equal rows."""

    input: Node
    order: tuple[exp.Expr, ...]
    limit: int
    offset: int = 0

    def __post_init__(self) -> None:
        self._require_columns(self.order, [self.input])
        _require(self.limit >= 0 and self.offset >= 0, "a limit and an offset of at least nothing")

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.input.fields

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Repeat(_Relation):
    """Each row as often as a column of it says, without that column: from a counted bag to rows."""

    input: Node
    times: str

    def __post_init__(self) -> None:
        _require(self.times in self.input.names, "a column that says how often")

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(f for f in self.input.fields if f.name != self.times)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Unnest(_Relation):
    """Each row once per element of an array or entry of a map (LATERAL VIEW explode); `outer` keeps rows with none."""

    input: Node
    generator: exp.Expr
    made: tuple[Field, ...]
    outer: bool = False

    def __post_init__(self) -> None:
        self._require_columns([self.generator], [self.input])
        _require_distinct([*self.input.names, *(f.name for f in self.made)])

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.input.fields, *self.made)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


# several inputs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Join(_Relation):
    """Inner join of any width, evaluated in the order of its inputs; without conditions, the product."""

    parts: tuple[Node, ...]
    on: tuple[exp.Expr, ...] = ()
    """Conjuncts; each is applied as soon as the inputs that it speaks of are there."""
    sent: int | None = None
    """The place of the input that is small, if one is: it is sent to where the others are."""

    def __post_init__(self) -> None:
        _require(len(self.parts) >= 2, "a join of at least two")
        self._require_columns(self.on, self.parts)
        _require_distinct(name for part in self.parts for name in part.names)

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(f for part in self.parts for f in part.fields)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True)
class Outer(_Relation):
    """Left or full outer join."""

    kind: Literal["left", "full"]
    left: Node
    right: Node
    on: exp.Expr
    sent: int | None = None

    def __post_init__(self) -> None:
        self._require_columns([self.on], self.inputs)
        _require_distinct([*self.left.names, *self.right.names])

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        left = self.left.fields if self.kind == "left" else tuple(replace(f, nullable=True) for f in self.left.fields)
        return (*left, *(replace(f, nullable=True) for f in self.right.fields))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Semi(_Relation):
    """The rows of the left that meet some row of the right (semi), or none (anti)."""

    kind: Literal["semi", "anti"]
    left: Node
    right: Node
    on: exp.Expr
    sent: int | None = None

    def __post_init__(self) -> None:
        self._require_columns([self.on], self.inputs)
        _require_distinct([*self.left.names, *self.right.names])

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.left.fields

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class UnionAll(_Relation):
    """Bags together, columns by position, named as in the first."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        _require(len(self.parts) >= 2, "a union of at least two")
        _require(len({len(p.names) for p in self.parts}) == 1, "a union of relations of the same width")

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(_together(fields) for fields in zip(*(p.fields for p in self.parts), strict=True))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True)
class SetOp(_Relation):
    """EXCEPT [ALL] (with ALL the paper's monus) and INTERSECT [ALL]; columns by position, named as in the left."""

    kind: Literal["except", "except all", "intersect", "intersect all"]
    left: Node
    right: Node

    def __post_init__(self) -> None:
        _require(len(self.left.names) == len(self.right.names), "relations of the same width")

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(_together(pair) for pair in zip(self.left.fields, self.right.fields, strict=True))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


Leaf = Scan | Change | Stored | Values | Opaque
Unary = Filter | Project | Aggregate | Window | TopK | Repeat | Unnest
Node = Leaf | Unary | Join | Outer | Semi | UnionAll | SetOp


def _names(node: Node) -> tuple[str, ...]:
    """What the columns are called, without their types, which take much longer to tell."""
    match node:
        case Project(_, outputs):
            return tuple(name for name, _ in outputs)
        case Aggregate(_, keys, aggregates):
            return (*keys, *(name for name, _ in aggregates))
        case Window(input, _, functions):
            return (*input.names, *(name for name, _ in functions))
        case Join(parts):
            return tuple(name for part in parts for name in part.names)
        case Outer(_, left, right):
            return (*left.names, *right.names)
        case Filter() | TopK() | Semi() | SetOp() | UnionAll():
            return node.inputs[0].names
    return tuple(f.name for f in node.fields)


def _require_distinct(names: Iterable[str]) -> None:
    folded = [name.casefold() for name in names]
    twice = {name for name in folded if folded.count(name) > 1}
    _require(not twice, f"columns named twice: {sorted(twice)}")


def _together(fields: tuple[Field, ...]) -> Field:
    """A column of a set operation: null if it can be in any input; of the type that all agree on, else unknown."""
    types = {f.type for f in fields}
    return Field(fields[0].name, types.pop() if len(types) == 1 else "", any(f.nullable for f in fields))


# walking --------------------------------------------------------------------------------------------------------------


def walk(node: Node) -> Iterator[Node]:
    """The node and everything under it, parents first."""
    yield node
    for part in node.inputs:
        yield from walk(part)


def tables(node: Node) -> frozenset[str]:
    """The tables that it reads."""
    scanned = (n.table for n in walk(node) if isinstance(n, Scan))
    return frozenset(scanned).union(*(n.reads for n in walk(node) if isinstance(n, Opaque)))


def rebuilt(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same operator over other inputs."""
    if inputs == node.inputs:
        return node
    match node:
        case Join() | UnionAll():
            return replace(node, parts=inputs)
        case Outer() | Semi() | SetOp():
            return replace(node, left=inputs[0], right=inputs[1])
        case Filter() | Project() | Aggregate() | Window() | TopK() | Repeat() | Unnest():
            return replace(node, input=inputs[0])
        case Scan() | Change() | Stored() | Values() | Opaque():
            return node


def transform(node: Node, function: Callable[[Node], Node]) -> Node:
    """Applies a function to every node, inputs first."""
    return function(rebuilt(node, tuple(transform(part, function) for part in node.inputs)))
