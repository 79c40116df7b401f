"""New rows beside the stored tuples that they meet, on the driver: what becomes of them is computed by the same SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import pyarrow as pa
from pyspark.sql.types import StructType
from sqlglot import exp, parse_one

from matview.local.kinds import FOR_SPARK, Kind, NotLocal, kind_of
from matview.local.scalars import Function, Name, Row, Scalar, Scope, scalar, tabulated
from matview.remembered import cached_property
from matview.storage.values import rows_of, table_of_columns
from matview.versions.text import MatviewSpark

Named = tuple[tuple[Name, Kind | None], ...]
"""The columns in their order; without a kind those that only Spark knows."""


@dataclass(frozen=True)
class Side:
    """Rows under a name, if they have one; places of those that stand beside one another, None where there is none."""

    name: str
    table: pa.Table
    schema: StructType
    places: Sequence[int | None]

    @cached_property
    def columns(self) -> Named:
        """A struct of one field stands for that field."""
        return tuple(_column(self.name, field.name, field.dataType.simpleString()) for field in self.schema.fields)

    @cached_property
    def rows(self) -> list[Row]:
        nobody, there = (None,) * len(self.schema), rows_of(self.table, self.schema.names)
        return [nobody if place is None else there[place] for place in self.places]


def _column(relation: str, name: str, kind: str) -> tuple[Name, Kind | None]:
    place = (relation, name) if relation else (name,)
    inner = kind.removeprefix("struct<v:").removesuffix(">") if kind.startswith("struct<v:") else None
    try:
        return (place, kind_of(kind)) if inner is None else ((*place, "v"), kind_of(inner))
    except NotLocal:
        return place, None


@dataclass(frozen=True)
class Program:
    """Conditions and columns as functions of rows that stand beside one another."""

    conditions: tuple[Function, ...]
    columns: tuple[Scalar, ...]

    @classmethod
    def of(cls, named: Named, conditions: Iterable[exp.Expr], columns: Iterable[exp.Expr]) -> Program:
        known = {name: (place, kind) for place, (name, kind) in enumerate(named) if kind is not None}
        scope = Scope(known, tests={})
        return cls(tuple(scalar(c, scope).of for c in conditions), tuple(scalar(c, scope) for c in columns))

    def computed(self, sides: Sequence[Side], schema: pa.Schema) -> pa.Table:
        rows: list[Row] = [tuple(chain.from_iterable(parts)) for parts in zip(*(s.rows for s in sides), strict=True)]
        for holds in self.conditions:
            rows = [row for row in rows if holds(row)]
        return table_of_columns(tabulated(self.columns, rows), schema)


def computed(
    sides: Sequence[Side], conditions: Iterable[str], columns: Iterable[str], schema: pa.Schema
) -> pa.Table | None:
    """The columns, SQL over the sides, of the rows for which all conditions hold; None if it is for Spark. What is the
    same text from time to time is made a program once."""
    program = _program(_named(sides), tuple(conditions), tuple(columns))
    try:
        return None if program is None else program.computed(sides, schema)
    except FOR_SPARK:
        return None


def computed_once(
    sides: Sequence[Side], conditions: Iterable[exp.Expr], columns: Iterable[exp.Expr], schema: pa.Schema
) -> pa.Table | None:
    """As `computed`, of what hardly comes again."""
    try:
        return Program.of(_named(sides), conditions, columns).computed(sides, schema)
    except FOR_SPARK:
        return None


@lru_cache(256)
def _program(named: Named, conditions: tuple[str, ...], columns: tuple[str, ...]) -> Program | None:
    """All of it parsed at once; None if it is for Spark."""
    parsed = parse_one(f"SELECT {', '.join((*conditions, *columns))}", dialect=MatviewSpark).expressions
    try:
        return Program.of(named, parsed[: len(conditions)], parsed[len(conditions) :])
    except FOR_SPARK:
        return None


def _named(sides: Sequence[Side]) -> Named:
    return tuple(column for side in sides for column in side.columns)
