"""What a refresh does to one stored relation: plain data, which `maintain` runs and `explain` prints."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from matview.algebra.nodes import Node
from matview.plan.definition import Part

NEW, OLD = "new", "old"
"""The qualifiers of columns in a `Merge`: the row at hand, and the stored row of the same key (nulls if none)."""
THERE = "__there"


@dataclass(frozen=True)
class Apply:
    """Adds a signed bag to what is stored."""

    change: Node


@dataclass(frozen=True)
class Merge:
    """One row per key, put together with the stored one: the value of each column, and whether the row goes."""

    rows: Node
    values: tuple[tuple[str, exp.Expr], ...]
    gone: exp.Expr


@dataclass(frozen=True)
class Rebuild:
    """Computes everything anew."""

    rows: Node


Action = Apply | Merge | Rebuild


@dataclass(frozen=True)
class Step:
    """An action on a part, by the strategy that proposed it: about how many rows it computes; the seconds by estimate,
    and corrected by what was seen; whether the driver may compute it itself."""

    part: Part
    strategy: str
    action: Action
    rows: float = 0.0
    estimated: float = 0.0
    cost: float = 0.0
    at_hand: bool = False

    @property
    def node(self) -> Node:
        """What is computed."""
        match self.action:
            case Apply(node) | Merge(node) | Rebuild(node):
                return node

    def over(self, node: Node) -> Step:
        """The same step, computed another way."""
        match self.action:
            case Apply():
                return replace(self, action=Apply(node))
            case Merge():
                return replace(self, action=replace(self.action, rows=node))
            case Rebuild():
                return replace(self, action=Rebuild(node))
