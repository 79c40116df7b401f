"""Relations that have no inputs: tables, their changes, what views hold, values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.relation import Relation, require
from matview.algebra.schema import Field
from matview.remembered import cached_property

WEIGHT = "__weight"
"""The column of a change that says how often a row comes (positive) or goes (negative)."""

OLD_SUFFIX, UPDATES = "~old", "__updates"
"""A change may tell an update as one row: old values stand in columns of this suffix, and 1 in `__updates`."""


def own_column(column: str, columns: Collection[str]) -> str:
    """The column of the table that one of a change's columns is of."""
    return column.removesuffix(OLD_SUFFIX) if UPDATES in columns else column


@dataclass(frozen=True)
class Scan(Relation):
    """A table in its new state. `columns` are its own names, `fields` what they are called here."""

    table: str
    columns: tuple[str, ...]
    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()
    """Fields that tell rows apart; empty for a bag."""

    def __post_init__(self) -> None:
        require(len(self.columns) == len(self.fields), "as many columns as fields")
        require(set(self.key) <= set(self.names), "a key of its own fields")


@dataclass(frozen=True)
class Change(Relation):
    """How a table changes: the rows of `scan` that come and go, with their weights."""

    scan: Scan

    @cached_property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.scan.fields, Field(WEIGHT, "bigint", nullable=False))


@dataclass(frozen=True)
class Stored(Relation):
    """What a view holds before it is refreshed, hidden columns included."""

    view: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Values(Relation):
    """Rows written out; no rows at all is the empty relation, one row without fields is the unit of the product."""

    fields: tuple[Field, ...]
    rows: tuple[tuple[exp.Expr, ...], ...]

    def __post_init__(self) -> None:
        require(all(len(row) == len(self.fields) for row in self.rows), "every row has a value for every field")


@dataclass(frozen=True)
class Opaque(Relation):
    """A query that no rule understands, as it was written: it can be computed, not maintained."""

    query: exp.Expr
    fields: tuple[Field, ...]
    reads: frozenset[str]
