"""The rows that a statement brings: computed once, and measured by the same job.

Few rows of plain types come to the driver and go back into the plan as a local relation: nothing done with them there
starts a shuffle, and how many there are, and within which bounds, is known. Other rows Spark keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from matview.maintain.change.held import Held
from matview.maintain.change.working import Working
from matview.remembered import cached_property
from matview.spark.errors import translated
from matview.storage.engine import Engine
from matview.storage.few import are_few, arrow_schema, most
from matview.storage.snapshot import DataFile, Level
from matview.versions.layout import LEVEL, RID, Layout
from matview.versions.predicates import Constant, Kind, Predicate, kind_of
from matview.versions.pruning import may_match
from matview.versions.text import quoted
from matview.versions.tuples import Operation

_BOUNDED = {Kind.INTEGRAL, Kind.DECIMAL, Kind.STRING, Kind.DATE}


@dataclass(frozen=True)
class Given:
    """Rows that may be used any number of times; `few` has them on the driver as well, if they are few."""

    made: Callable[[], DataFrame]
    schema: StructType
    few: pa.Table | None = None

    @classmethod
    def kept(cls, rows: DataFrame) -> Given:
        """Rows that Spark has."""
        return cls(lambda: rows, rows.schema)

    @classmethod
    def local(cls, engine: Engine, few: pa.Table, schema: StructType) -> Given:
        """Rows that the driver has; Spark gets them when it needs them."""
        return cls(lambda: engine.local(few, schema), schema, few)

    @cached_property
    def rows(self) -> DataFrame:
        return self.made()

    def place(self, column: str) -> int:
        return [name.casefold() for name in self.schema.names].index(column.casefold())

    @property
    def is_empty(self) -> bool:
        return self.few is not None and not self.few.num_rows

    @property
    def is_few(self) -> bool:
        """So few that Spark needs but one partition for them."""
        return self.few is not None and are_few(self.few.num_rows)

    @property
    def together(self) -> DataFrame:
        """As `rows`; if they are few, in one partition, where grouping and writing need no shuffle."""
        return self.rows.coalesce(1) if self.is_few else self.rows


def given(working: Working, rows: DataFrame, expected: float = math.inf) -> Given:
    """The rows of a statement about a table, kept until it is done."""
    return computed(working.table.engine, working.held, rows, expected)


def computed(engine: Engine, held: Held, rows: DataFrame, expected: float = math.inf) -> Given:
    """Computes the rows, one job. Those expected to be few are not kept on the way, those expected not to be are kept
    by the first job that uses them."""
    if are_few(expected):
        few, kept = _fetched(rows), rows
    else:
        kept = held.hold(rows)
        few = _fetched(kept) if expected == math.inf else None
    if few is not None:
        return Given.local(engine, few, rows.schema)
    return Given.kept(held.hold(rows) if kept is rows else kept)


def newest_states(working: Working, states: DataFrame) -> Given | None:
    """Of stored states of tuples the newest of each tuple, void ones left out: an overlay's, with the latest tupleVN_1.

    None if they are not few, or of types that do not travel.
    """
    found = _fetched(states)
    if found is None:
        return None
    vn, op = working.table.layout.vn(1), working.table.layout.op(1)
    assert Level.OVERLAY > Level.BASE  # as texts, by which the levels are sorted here
    ordered = found.sort_by([(RID, "ascending"), (LEVEL, "descending"), (vn, "descending")])
    identities = ordered[RID].to_pylist()
    first = [i for i, identity in enumerate(identities) if i == 0 or identity != identities[i - 1]]
    newest = ordered.take(pa.array(first, pa.int64()))
    there = newest.filter(pc.not_equal(newest[op], int(Operation.VOID)))
    return Given.local(working.table.engine, there, states.schema)


def _fetched(rows: DataFrame) -> pa.Table | None:
    """The rows on the driver, if they are few and of plain types."""
    if arrow_schema(rows.schema) is None:
        return None
    with translated("reading the rows to change"):
        found = rows.limit(most() + 1).toArrow()
    return found if are_few(found.num_rows) else None


# where such rows can meet stored ones ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Extent:
    """How many rows there are, and between which values a column of theirs lies; with no bounds, anywhere."""

    column: str
    count: int
    bounds: tuple[object, object] | None = None

    def files(self, layout: Layout, files: Sequence[DataFile]) -> tuple[DataFile, ...]:
        """The files that can hold a row with an equal value in that column, by their statistics."""
        if not self.count:
            return ()
        wanted = self._predicates()
        return tuple(f for f in files if may_match(wanted, layout, f.minimum, f.maximum))

    def _predicates(self) -> tuple[Predicate, ...]:
        if self.bounds is None:
            return ()
        least, greatest = (Constant("", value) for value in self.bounds)  # type: ignore[arg-type]
        return Predicate(self.column, ">=", (least,)), Predicate(self.column, "<=", (greatest,))


def extent(layout: Layout, rows: Given, column: str) -> Extent:
    """The extent in a column that no update changes. A null lies in no bounds, but is equal to a null."""
    place = rows.place(column)
    kind = kind_of(rows.schema[place].dataType.simpleString())
    if kind not in _BOUNDED or kind is not kind_of(layout.type_of(column)):
        return Extent(column, _count(rows))
    if rows.few is not None:
        values = rows.few.column(place)
        return Extent(column, len(values), _bounds(pc.min_max(values), values.null_count))
    value = F.col(quoted(column))
    extremes = F.struct(F.min(value).alias("min"), F.max(value).alias("max"))
    count, nulls, bounds = _asked(rows.rows, F.count(F.lit(1)), F.count_if(value.isNull()), extremes)
    return Extent(column, count.as_py(), _bounds(bounds, nulls.as_py()))


def _count(rows: Given) -> int:
    return rows.rows.count() if rows.few is None else rows.few.num_rows


def _asked(rows: DataFrame, *what: Column) -> list[pa.Scalar]:
    with translated("reading the rows to change"):
        return [column[0] for column in rows.agg(*what).toArrow().columns]


def _bounds(extremes: pa.StructScalar, nulls: int) -> tuple[object, object] | None:
    try:
        least, greatest = extremes["min"].as_py(), extremes["max"].as_py()
    except (ValueError, OverflowError):  # a date that Python has none of, beyond the year 9999
        return None
    return None if nulls or least is None else (least, greatest)
