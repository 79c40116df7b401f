"""Relations with one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from matview.algebra.relation import Relation, require, require_distinct
from matview.algebra.scalars import nullable, type_of
from matview.algebra.schema import Field
from matview.remembered import cached_property

if TYPE_CHECKING:
    from matview.algebra.nodes import Node


class _OfOne(Relation):
    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Filter(_OfOne):
    input: Node
    condition: exp.Expr

    def __post_init__(self) -> None:
        self.require_columns([self.condition], [self.input])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.input.names

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.input.fields


@dataclass(frozen=True)
class Project(_OfOne):
    """New columns from old ones, duplicates kept."""

    input: Node
    outputs: tuple[tuple[str, exp.Expr], ...]

    def __post_init__(self) -> None:
        self.require_columns([e for _, e in self.outputs], [self.input])
        require_distinct(name for name, _ in self.outputs)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        given = {f.name: f for f in self.input.fields}
        return tuple(Field(name, type_of(e, given), nullable(e, given)) for name, e in self.outputs)


@dataclass(frozen=True)
class Aggregate(_OfOne):
    """Groups by columns; without any there is one group, even over nothing. No aggregates: duplicate elimination."""

    input: Node
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, exp.Expr], ...] = ()

    def __post_init__(self) -> None:
        self.require_columns([e for _, e in self.aggregates], [self.input])
        require(set(self.keys) <= set(self.input.names), f"group by columns of the input, not {self.keys}")
        require_distinct([*self.keys, *(name for name, _ in self.aggregates)])
        require(bool(self.keys or self.aggregates), "an aggregate of something")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (*self.keys, *(name for name, _ in self.aggregates))

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        given = {f.name: f for f in self.input.fields}
        made = (Field(name, type_of(e, given), nullable(e, given)) for name, e in self.aggregates)
        return (*(given[name] for name in self.keys), *made)


@dataclass(frozen=True)
class Window(_OfOne):
    """The input's rows, each with the values of window functions, all over the same partitions."""

    input: Node
    partition: tuple[str, ...]
    functions: tuple[tuple[str, exp.Expr], ...]

    def __post_init__(self) -> None:
        self.require_columns([e for _, e in self.functions], [self.input])
        require(set(self.partition) <= set(self.input.names), "partition by columns of the input")
        require_distinct([*self.input.names, *(name for name, _ in self.functions)])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (*self.input.names, *(name for name, _ in self.functions))

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        given = {f.name: f for f in self.input.fields}
        return (*self.input.fields, *(Field(name, type_of(e, given), True) for name, e in self.functions))


@dataclass(frozen=True)
class TopK(_OfOne):
    """The first `limit` rows after `offset` others in an order that leaves no ties but between equal rows."""

    input: Node
    order: tuple[exp.Expr, ...]
    limit: int
    offset: int = 0

    def __post_init__(self) -> None:
        self.require_columns(self.order, [self.input])
        require(self.limit >= 0 and self.offset >= 0, "a limit and an offset of at least nothing")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.input.names

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.input.fields


@dataclass(frozen=True)
class Repeat(_OfOne):
    """Each row as often as a column of it says, without that column: from a counted bag to rows."""

    input: Node
    times: str

    def __post_init__(self) -> None:
        require(self.times in self.input.names, "a column that says how often")

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(f for f in self.input.fields if f.name != self.times)


@dataclass(frozen=True)
class Unnest(_OfOne):
    """Each row once per element of an array or entry of a map (LATERAL VIEW explode); `outer` keeps rows with none."""

    input: Node
    generator: exp.Expr
    made: tuple[Field, ...]
    outer: bool = False

    def __post_init__(self) -> None:
        self.require_columns([self.generator], [self.input])
        require_distinct([*self.input.names, *(f.name for f in self.made)])

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.input.fields, *self.made)
