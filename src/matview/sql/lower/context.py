"""What every part of the lowering is handed: schemas, names, common table expressions, and how to complain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from matview.algebra.nodes import Node
from matview.algebra.schema import Schema
from matview.errors import BadDefinition, NotIncremental, Place, UnknownColumn
from matview.sql.lower.names import Names
from matview.sql.lower.scope import Given, Scope
from matview.sql.pieces import DIALECT


@dataclass(frozen=True)
class Lowered:
    """A query's relation: its output columns (the user's name, the relation's), then those it carries along."""

    node: Node
    columns: tuple[tuple[str, str], ...]
    carried: tuple[str, ...] = ()


class LowerQuery(Protocol):
    """The whole lowering, for a query inside another; `label` is what its columns are called after."""

    def __call__(self, ctx: Context, query: exp.Expr, given: Given | None, label: str) -> Lowered: ...


class FilterRows(Protocol):
    """The rows of a scope for which a condition over its columns holds, subqueries in it included."""

    def __call__(self, ctx: Context, scope: Scope, condition: exp.Expr) -> Scope: ...


@dataclass(frozen=True)
class Cte:
    """A common table expression and those that it can itself see."""

    definition: exp.CTE
    ctes: Mapping[str, Cte]


@dataclass(frozen=True)
class Context:
    schema_of: Callable[[exp.Table], Schema]
    source: str
    lower_query: LowerQuery
    filter_rows: FilterRows
    names: Names = field(default_factory=Names)
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    """How each table was written first, so that one table has one name whatever its case."""

    def with_ctes(self, ctes: Mapping[str, Cte]) -> Context:
        return replace(self, ctes=ctes)

    def where(self, node: exp.Expr | None) -> Place | None:
        """Where a part of the query begins; of one that the parser gives no place, where it stands in another."""
        while node is not None:
            if spots := [_spot(n) for n in node.walk() if "line" in n.meta]:
                return Place(*min(spots), self.source)
            node = node.parent
        return None

    def bad(self, what: str, node: exp.Expr | None, help: str) -> BadDefinition:
        return BadDefinition(what, where=self.where(node), help=help)

    def unknown(self, what: str, node: exp.Expr | None, help: str | None = None) -> UnknownColumn:
        return UnknownColumn(what, where=self.where(node), help=help)

    def refused(self, what: str, node: exp.Expr | None, help: str | None = None) -> NotIncremental:
        return NotIncremental(what, where=self.where(node), help=help)

    def allow(self, node: exp.Expr, *parts: str) -> None:
        """Refuses whatever clause of the node is not among `parts`."""
        for part, value in node.args.items():
            if value and part not in parts:
                raise self._not_understood(node, part, value)

    def _not_understood(self, node: exp.Expr, part: str, value: object) -> NotIncremental:
        spot = next((v for v in _listed(value) if isinstance(v, exp.Expr)), node)
        name = type(spot).__name__ if spot is not node else part.strip("_").replace("_", " ")
        return self.refused(f"a view cannot have `{shown(spot)}` ({name}) here", spot if self.where(spot) else node)


def _spot(node: exp.Expr) -> tuple[int, int]:
    """Where the node's token begins; the parser notes where it ends."""
    return node.meta["line"], max(1, node.meta["col"] - (node.meta["end"] - node.meta["start"]))


def _listed(value: object) -> Collection[object]:
    return value if isinstance(value, list) else [value]


def shown(node: exp.Expr) -> str:
    """A part of a query, short enough for a message."""
    text = node.sql(DIALECT)
    return text if len(text) <= 60 else text[:57] + "..."
