"""What all nodes of the algebra have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlglot import exp

from matview.algebra.scalars import columns_in
from matview.algebra.schema import Field
from matview.remembered import cached_property

if TYPE_CHECKING:
    from matview.algebra.nodes import Node


class BadNode(ValueError):
    """A node that cannot be: a mistake in this program, never in a user's text."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise BadNode(what)


def require_distinct(names: Iterable[str]) -> None:
    folded = [name.casefold() for name in names]
    twice = {name for name in folded if folded.count(name) > 1}
    require(not twice, f"columns named twice: {sorted(twice)}")


class Relation:
    """Fields, inputs, and a hash that is told once."""

    fields: tuple[Field, ...]

    def __init_subclass__(cls) -> None:
        """Trees share their parts, so a node is hashed once, not as often as there are ways to it."""
        cls.__hash__ = Relation._remembered_hash  # type: ignore[assignment]

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__match_args__)))  # type: ignore[attr-defined]

    def _remembered_hash(self) -> int:
        return self._hash

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the columns are called. Nodes that can tell without their types do: types take much longer to tell."""
        return tuple(f.name for f in self.fields)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def field(self, name: str) -> Field:
        return next(f for f in self.fields if f.name == name)

    def require_columns(self, expressions: Iterable[exp.Expr], given: Iterable[Node]) -> None:
        known = {name for node in given for name in node.names}
        for expression in expressions:
            if missing := columns_in(expression) - known:
                raise BadNode(f"{expression.sql('spark')}: no column {sorted(missing)}, only {sorted(known)}")
