"""New rows beside the stored tuples that they meet, if any.

`__n` is the new row and `__m` the tuple, all null where there is none; what becomes of them is SQL over both. Few rows
and few tuples meet on the driver, where most of that SQL can be computed: then no job is run for them. For what cannot,
they stand in the plan as a local relation of two structs, under the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType
from sqlglot import exp

from matview.algebra.scalars import conjunction
from matview.local.batch import one_array
from matview.local.kinds import FOR_SPARK
from matview.local.matching import equal_pairs
from matview.local.reach import MOST_ROWS
from matview.maintain.change.beside import NOW, Now, Side, computed, now
from matview.maintain.change.comparing import all_of, comparable, same_sql
from matview.maintain.change.given import Extent, Given, extent, newest_states
from matview.maintain.change.staged import RESTORE, Staged, staged_schema
from matview.maintain.change.working import Working
from matview.plan.narrow import LISTED, among
from matview.storage.engine import Engine, small
from matview.storage.few import are_few, arrow_schema, arrow_type, distinct_values, structs
from matview.storage.fold import SMALL_FILE_ROWS, clustered
from matview.storage.lookup import looked_up
from matview.storage.snapshot import DataFile, Level
from matview.versions import setwise
from matview.versions.layout import LEVEL, RID, Layout
from matview.versions.predicates import LONGEST_LIST, Kind, kind_of
from matview.versions.text import quoted, spark_text
from matview.versions.tuples import Operation

NEW, MET = "__n", "__m"
_AT = "__at"
BULK_ROWS = 1_000_000
_NUMBERED = {Kind.INTEGRAL, Kind.DATE}


@dataclass(frozen=True)
class Met:
    """`__n` left joined to `__m`, as far as all conditions hold; `sides` has them on the driver, if they are few.

    `fresh` is SQL that differs from one new row to another, from 0 up.
    """

    working: Working
    joined: Callable[[], DataFrame]
    count: int
    levels: tuple[Level, ...]
    is_together: bool
    fresh: str = "monotonically_increasing_id()"
    sides: tuple[Side, ...] = ()
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(cls, working: Working, rows: Given, key: Sequence[str], new: DataFrame | None = None) -> Met:
        """`new` was made of `rows` and has none but their keys, at most as many times; they themselves if not given."""
        found = extent(working.table.layout, rows, key[0])
        met = _stored(working, rows, found, key)
        levels: tuple[Level, ...] = (Level.BASE,) if met.is_empty else (Level.BASE, Level.OVERLAY)
        levels = levels if found.count else ()
        if new is None and (sides := _on_the_driver(rows, met, key)) is not None:
            fresh, joined = f"{NEW}.{_AT}", partial(_put_into_spark, working.table.engine, sides)
            return cls(working, joined, found.count, levels, is_together=are_few(found.count), fresh=fresh, sides=sides)
        joined = partial(_joined, working.table.layout, rows, new, met, found.count, key)
        return cls(working, joined, found.count, levels, is_together=rows.is_few)

    def where(self, condition: str) -> Met:
        return replace(self, conditions=(*self.conditions, condition))

    def staged(self, act: str, values: Mapping[str, str], beside: Mapping[str, str]) -> Staged:
        """The tuples after `act`, by Tables 2-4."""
        told = partial(self._told, act, values, beside)
        here = self._computed(told(NOW)) if self.sides else None
        return Staged(
            lambda: self._selected(values, told(Now.told(self.working))),
            self.levels,
            self.count,
            few=self.is_together,
            here=here,
        )

    def _told(self, act: str, values: Mapping[str, str], beside: Mapping[str, str], at: Now) -> dict[str, str]:
        """The columns of the tuples afterwards, and those beside them, as SQL."""
        stored = _after(self.working.table.layout, act, tuple(values.items()), self.fresh, at)
        level = f"CASE WHEN {MET}.{RID} IS NULL THEN '{Level.BASE.value}' ELSE {after(self.working, act, MET, at)} END"
        return {**stored, LEVEL: level, **beside}

    def _selected(self, values: Mapping[str, str], columns: Mapping[str, str]) -> DataFrame:
        rows = self.joined()
        for condition in self.conditions:
            rows = rows.where(condition)
        return self._arranged(rows, values).selectExpr(*(f"{sql} AS {quoted(name)}" for name, sql in columns.items()))

    def _computed(self, columns: Mapping[str, str]) -> pa.Table | None:
        schema = staged_schema(self.working.table, columns)
        assert schema is not None  # the sides have no types that do not travel
        sides = (*self.sides, now(self.working, len(self.sides[0].places)))
        return computed(sides, self.conditions, columns.values(), schema)

    def _arranged(self, rows: DataFrame, values: Mapping[str, str]) -> DataFrame:
        """In as many partitions as there shall be files; a load of many rows by the clustering columns, if any."""
        if self.is_together:
            return rows
        cluster_by = self.working.table.cluster_by
        if cluster_by and self.count > SMALL_FILE_ROWS:
            is_old = F.expr(f"{MET}.{RID} IS NOT NULL")  # base and overlay apart, as their files are
            return clustered(rows, self.count, is_old, *(F.expr(values[name]) for name in cluster_by))
        return rows if self.count > BULK_ROWS else rows.hint("rebalance", 1)


@lru_cache(256)
def _after(layout: Layout, act: str, values: tuple[tuple[str, str], ...], fresh: str, at: Now) -> dict[str, str]:
    """The stored columns after `act`."""
    new, absent = dict(values), f"{MET}.{RID} IS NULL"
    created = setwise.inserted(layout, at.vn, new, f"{at.next_rid} + {fresh}")
    changed = setwise.changed(layout, at.vn, act, {c: new[c] for c in layout.updatable}, row=MET)
    return {c: f"CASE WHEN {absent} THEN {created[c]} ELSE {changed[c]} END" for c in created}


def after(working: Working, act: str | Operation, row: str, at: Now) -> str:
    """The level of a stored tuple after `act`: in the overlay. An insert of this very transaction that it deletes again
    is undone: a new tuple turns void, a revived one is restored."""
    if not working.staged:
        return f"'{Level.OVERLAY.value}'"
    undone = setwise.own_insert_deleted(working.table.layout, at.vn, act, row=row)
    revived = f"{quoted(row)}.{RID} < {at.first_rid}"
    return f"CASE WHEN {undone} AND {revived} THEN '{RESTORE}' ELSE '{Level.OVERLAY.value}' END"


# beside one another ---------------------------------------------------------------------------------------------------


def _joined(
    layout: Layout, rows: Given, new: DataFrame | None, met: Given, count: int, key: Sequence[str]
) -> DataFrame:
    on = " AND ".join(same_sql(f"{NEW}.{quoted(c)}", f"{MET}.{quoted(c)}", layout, c) for c in key)
    left = rows.together if new is None else new
    return left.alias(NEW).join(small(met.rows, count).alias(MET), F.expr(on), "left")


def _on_the_driver(rows: Given, met: Given, key: Sequence[str]) -> tuple[Side, Side] | None:
    """None if they are not both there, or if what is to be compared is not of one type."""
    if rows.few is None or met.few is None or arrow_schema(met.schema) is None:
        return None
    mine, theirs = [rows.few.column(rows.place(c)) for c in key], [met.few[c] for c in key]
    if any(one.type != other.type for one, other in zip(mine, theirs, strict=True)):
        return None
    try:
        met_by_key = equal_pairs([*map(one_array, mine)], [*map(one_array, theirs)], [False] * len(key))
    except FOR_SPARK:
        return None
    found = met_by_key.and_others(rows.few.num_rows)
    new = rows.few.append_column(_AT, pa.arange(0, rows.few.num_rows))
    shape = StructType([*rows.schema.fields, StructField(_AT, LongType())])
    return Side(NEW, new, shape, found.here), Side(MET, met.few, met.schema, found.there)


def _put_into_spark(engine: Engine, sides: Sequence[Side]) -> DataFrame:
    """A local relation of two structs, under the same names."""
    columns, fields = {}, []
    for side in sides:
        columns[side.name] = structs(side.table.take(side.places), side.places.is_null().to_pylist())
        shape = StructType([StructField(f.name, f.dataType) for f in side.schema.fields])
        fields.append(StructField(side.name, shape))
    return engine.local(pa.table(columns), StructType(fields))


# what is stored -------------------------------------------------------------------------------------------------------


def _stored(working: Working, rows: Given, found: Extent, key: Sequence[str]) -> Given:
    """The stored tuples that have those keys, each in its newest state; of few rows perhaps some others."""
    layout, table = working.table.layout, working.table
    files = found.files(layout, working.current.files)
    if not files:
        return _none_of(working)
    if rows.few is not None and (found_here := _looked_up(working, rows, files, key)) is not None:
        return found_here
    if rows.few is not None:
        near = _near(layout, rows, key)
        tuples = table.tuples(files).where(spark_text(conjunction(*near)))
        if len(near) < len(key) or found.count > LONGEST_LIST:
            tuples = _matching(layout, rows, found, tuples, key)
        newest = newest_states(working, tuples)
        if newest is not None:
            return newest
    # what hides a tuple has its key, and so is in one of the files, or hides what is not met
    latest = table.latest(files, tuple(f for f in files if f.level is Level.OVERLAY))
    return Given.kept(_matching(layout, rows, found, latest, key))


def _none_of(working: Working) -> Given:
    columns, engine = working.table.layout.columns, working.table.engine
    struct = engine.struct(columns)
    schema = arrow_schema(struct)
    return Given.kept(engine.empty(columns)) if schema is None else Given.local(engine, schema.empty_table(), struct)


def _looked_up(working: Working, rows: Given, files: Sequence[DataFile], key: Sequence[str]) -> Given | None:
    """On the driver, by those columns of the key that tuples can be looked up by."""
    table = working.table
    if rows.few is None:
        return None
    struct = table.engine.struct(table.layout.columns)
    listed = [c for c in key if kind_of(table.layout.type_of(c)) in LISTED]
    values = {c: rows.few.column(rows.place(c)).unique() for c in listed}
    values = {c: found for c, found in values.items() if found.type == arrow_type(struct[c].dataType)}
    found = looked_up(table, files, struct.names, values, MOST_ROWS) if values else None
    return None if found is None else Given.local(table.engine, found, struct)


def _matching(layout: Layout, rows: Given, found: Extent, tuples: DataFrame, key: Sequence[str]) -> DataFrame:
    """The tuples that have the key of some row."""
    keys = rows.rows.select(*(comparable(layout, c).alias(f"__k{i}") for i, c in enumerate(key)))
    same = all_of(comparable(layout, c).eqNullSafe(F.col(f"__k{i}")) for i, c in enumerate(key))
    return _telling(layout, rows, found, tuples, key).join(small(keys, found.count), same, "left_semi")


def _telling(layout: Layout, rows: Given, found: Extent, tuples: DataFrame, key: Sequence[str]) -> DataFrame:
    """Of many tuples those that have the value of some row in one column without nulls, the one that tells most.

    That is a hash of one number; to compare all columns, nulls included, costs several times as much per tuple.
    """
    known = {c for c in key if kind_of(layout.type_of(c)) in _NUMBERED}
    if len(key) == 1 or found.count <= LONGEST_LIST:
        return tuples
    if rows.few is None:
        best = found.column if found.column in known and found.bounds is not None else None
    else:
        values = {c: rows.few.column(rows.place(c)) for c in key if c in known}
        counts = {c: pc.count_distinct(column).as_py() for c, column in values.items() if not column.null_count}
        best = max(counts, key=lambda c: counts[c], default=None)
    if best is None:
        return tuples
    there = small(rows.rows.select(_col(best).alias("__known")), found.count)
    return tuples.join(there, _col(best) == F.col("__known"), "left_semi")


def _near(layout: Layout, rows: Given, key: Sequence[str]) -> list[exp.Expr]:
    """What the keys of few rows say of each column alone: files, row groups and pages are skipped by it."""
    assert rows.few is not None
    known = []
    for column in key:
        place = rows.place(column)
        kind = kind_of(layout.type_of(column))
        if kind not in LISTED or kind is not kind_of(rows.schema[place].dataType.simpleString()):
            continue
        values = distinct_values(rows.few.column(place))
        known.append(None if values is None else among(column, values, kind))
    return [condition for condition in known if condition is not None]


def _col(name: str) -> Column:
    return F.col(quoted(name))
