"""New rows beside the stored tuples that they meet, on the driver: what becomes of them is computed by the same SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StructField, StructType
from sqlglot import exp, parse_one

from matview.local.batch import Batch, Function, beside, one_array, whole
from matview.local.kinds import FOR_SPARK, Kind, NotLocal, arrow_of, kind_of
from matview.local.scalars import Name, Scalar, Scope, condition_of, converted, scalar
from matview.maintain.change.working import Working
from matview.remembered import cached_property
from matview.versions.text import MatviewSpark

Named = tuple[tuple[Name, Kind | None], ...]
"""The columns in their order; without a kind those that only Spark knows."""


@dataclass(frozen=True)
class Side:
    """Rows under a name, if they have one; places of those that stand beside one another, null where there is none."""

    name: str
    table: pa.Table
    schema: StructType
    places: pa.Array

    @classmethod
    def alone(cls, name: str, table: pa.Table, schema: StructType) -> Side:
        return cls(name, table, schema, pa.arange(0, table.num_rows))

    @cached_property
    def columns(self) -> Named:
        """A struct of one field stands for that field."""
        return tuple(_column(self.name, field.name, field.dataType.simpleString()) for field in self.schema.fields)

    @cached_property
    def arrays(self) -> list[pa.Array]:
        return [_array(self.table.column(i), kind) for i, (_, kind) in enumerate(self.columns)]

    def where(self, holds: Function) -> Side:
        """The rows for which a condition holds."""
        batch = beside(len(self.places), (self.arrays, self.places))
        return replace(self, places=self.places.filter(whole(holds(batch), batch.size)))


@dataclass(frozen=True, slots=True)
class Now:
    """A transaction in SQL: its number, and the first row identities that it gave, and that it has left to give."""

    vn: str
    first_rid: str
    next_rid: str

    @classmethod
    def told(cls, working: Working) -> Now:
        return cls(str(working.vn), f"{working.first_rid}L", f"{working.next_rid}L")


_NAMED = [f"{part}" for part in Now.__slots__]
NOW = Now(*(f"__now.{part}" for part in _NAMED))
"""As columns of one more side: what is the same for all transactions is the same text, and made a program once."""


def now(working: Working, size: int) -> Side:
    """The side that `NOW` speaks of, beside so many rows."""
    values = [working.vn, working.first_rid, working.next_rid]
    table = pa.table({name: pa.array([value], pa.int64()) for name, value in zip(_NAMED, values, strict=True)})
    shape = StructType([StructField(name, LongType()) for name in _NAMED])
    return Side("__now", table, shape, pa.repeat(pa.scalar(0, pa.int32()), size))


def _array(column: pa.ChunkedArray, kind: Kind | None) -> pa.Array:
    found = one_array(column)
    if pa.types.is_struct(found.type):
        found = pc.struct_field(found, [0])
    return found if kind is None else converted(found, arrow_of(kind))


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
        return cls(tuple(condition_of(c, scope).of for c in conditions), tuple(scalar(c, scope) for c in columns))

    def computed(self, sides: Sequence[Side], schema: pa.Schema) -> pa.Table:
        batch = beside(len(sides[0].places), *((side.arrays, side.places) for side in sides))
        for holds in self.conditions:
            batch = batch.where(holds)
        arrays = [_stored(one, batch, field.type) for one, field in zip(self.columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)


def _stored(one: Scalar, batch: Batch, to: pa.DataType) -> pa.Array:
    """In the type that is stored, which must be able to hold it; NotLocal if that is not known of it."""
    found = one.rows(batch)
    if found.type == to or pa.types.is_null(found.type):
        return converted(found, to)
    is_number = pa.types.is_integer(found.type) or pa.types.is_decimal(found.type)
    if (pa.types.is_integer(found.type) and pa.types.is_integer(to)) or (is_number and pa.types.is_decimal(to)):
        return converted(found, to)
    raise NotLocal(f"a cast of {found.type} to {to}")


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


def met(side: Side, always: str, asked: exp.Expr | None) -> Side | None:
    """The rows for which two conditions hold: one that comes again and again, and one that hardly ever does. None if
    that is for Spark to find out."""
    known = _program(side.columns, (always,), ())
    try:
        once = Program.of(side.columns, () if asked is None else (asked,), ())
        return None if known is None else reduce(Side.where, (*known.conditions, *once.conditions), side)
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
