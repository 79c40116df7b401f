"""Relations with several inputs: joins, unions and set operations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from matview.algebra.relation import Relation, require, require_distinct
from matview.algebra.schema import Field
from matview.remembered import cached_property

if TYPE_CHECKING:
    from matview.algebra.nodes import Node


class _OfTwo(Relation):
    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Join(Relation):
    """Inner join of any width, evaluated in the order of its inputs; without conditions, the product."""

    parts: tuple[Node, ...]
    on: tuple[exp.Expr, ...] = ()
    """Conjuncts; each is applied as soon as the inputs that it speaks of are there."""
    sent: int | None = None
    """The place of the input that is small, if one is: it is sent to where the others are."""

    def __post_init__(self) -> None:
        require(len(self.parts) >= 2, "a join of at least two")
        self.require_columns(self.on, self.parts)
        require_distinct(name for part in self.parts for name in part.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.names)

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(f for part in self.parts for f in part.fields)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True)
class Outer(_OfTwo):
    """Left or full outer join."""

    kind: Literal["left", "full"]
    left: Node
    right: Node
    on: exp.Expr
    sent: int | None = None

    def __post_init__(self) -> None:
        self.require_columns([self.on], self.inputs)
        require_distinct([*self.left.names, *self.right.names])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (*self.left.names, *self.right.names)

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        left = self.left.fields if self.kind == "left" else tuple(replace(f, nullable=True) for f in self.left.fields)
        return (*left, *(replace(f, nullable=True) for f in self.right.fields))


@dataclass(frozen=True)
class Semi(_OfTwo):
    """The rows of the left that meet some row of the right (semi), or none (anti)."""

    kind: Literal["semi", "anti"]
    left: Node
    right: Node
    on: exp.Expr
    sent: int | None = None

    def __post_init__(self) -> None:
        self.require_columns([self.on], self.inputs)
        require_distinct([*self.left.names, *self.right.names])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.left.names

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.left.fields


@dataclass(frozen=True)
class UnionAll(Relation):
    """Bags together, columns by position, named as in the first."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        require(len(self.parts) >= 2, "a union of at least two")
        require(len({len(p.names) for p in self.parts}) == 1, "a union of relations of the same width")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.parts[0].names

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(_together(fields) for fields in zip(*(p.fields for p in self.parts), strict=True))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True)
class SetOp(_OfTwo):
    """EXCEPT [ALL] (with ALL the paper's monus) and INTERSECT [ALL]; columns by position, named as in the left."""

    kind: Literal["except", "except all", "intersect", "intersect all"]
    left: Node
    right: Node

    def __post_init__(self) -> None:
        require(len(self.left.names) == len(self.right.names), "relations of the same width")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.left.names

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(_together(pair) for pair in zip(self.left.fields, self.right.fields, strict=True))


_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def _together(fields: tuple[Field, ...]) -> Field:
    """A column of a set operation: null if it can be in any input; of the type that all agree on, else unknown."""
    types = {f.type for f in fields}
    widest = max(types, key=_INTEGERS.index) if types <= set(_INTEGERS) else ""
    return Field(fields[0].name, types.pop() if len(types) == 1 else widest, any(f.nullable for f in fields))
