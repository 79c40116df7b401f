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
from matview.local.scalars import Name, Row, Scope, scalar, tabulated
from matview.remembered import cached_property
from matview.storage.values import rows_of, table_of_columns
from matview.versions.text import MatviewSpark


@dataclass(frozen=True)
class Side:
    """Rows under a name, if they have one; places of those that stand beside one another, None where there is none."""

    name: str
    table: pa.Table
    schema: StructType
    places: Sequence[int | None]

    @cached_property
    def columns(self) -> list[tuple[Name, Kind | None]]:
        """A struct of one field stands for that field."""
        return [_column(self.name, field.name, field.dataType.simpleString()) for field in self.schema.fields]

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


def computed(
    sides: Sequence[Side], conditions: Iterable[exp.Expr], columns: Iterable[exp.Expr], schema: pa.Schema
) -> pa.Table | None:
    """The columns, expressions over the sides, of the rows for which all conditions hold; None if it is for Spark."""
    try:
        scope = _scope(sides)
        rows: list[Row] = [tuple(chain.from_iterable(parts)) for parts in zip(*(s.rows for s in sides), strict=True)]
        for condition in conditions:
            holds = scalar(condition, scope).of
            rows = [row for row in rows if holds(row)]
        made = [scalar(expression, scope) for expression in columns]
        return table_of_columns(tabulated(made, rows), schema)
    except FOR_SPARK:
        return None


def _scope(sides: Sequence[Side]) -> Scope:
    named = [column for side in sides for column in side.columns]
    return Scope({name: (place, kind) for place, (name, kind) in enumerate(named) if kind is not None}, tests={})


def expressions(texts: Iterable[str]) -> list[exp.Expr]:
    """SQL as expressions, all of it parsed at once. They are shared: none may be changed."""
    return list(_parsed(f"SELECT {', '.join(texts)}").expressions)


@lru_cache(256)
def _parsed(text: str) -> exp.Expr:
    return parse_one(text, dialect=MatviewSpark)
