"""From what a statement asks to the tuples it leaves: the set-oriented form of section 4.2 on Spark.

Every function gives *staged rows*: the stored columns of each touched tuple, and beside them

    __level    base (a new tuple), overlay (a new state of a stored one), restore (back to what was stored before)
    __act      what is reported: 1 insert, 2 update, 3 delete, `__times` times
    __fault    null, or why the row cannot be, as `faults.first_fault` tells it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from matview.algebra.scalars import conjunction
from matview.maintain.faults import NO_FAULT, Fault, Faults, first_fault, null_faults, required
from matview.maintain.given import NO_ROWS, Extent, Given, extent, given, newest_states
from matview.maintain.working import Working
from matview.plan.narrow import among
from matview.storage.engine import small
from matview.storage.fold import SMALL_FILE_ROWS, clustered
from matview.storage.snapshot import Level
from matview.versions import setwise
from matview.versions.layout import COUNT, LEVEL, RID, Layout
from matview.versions.predicates import LONGEST_LIST, Kind, kind_of
from matview.versions.text import quoted, spark_text
from matview.versions.tuples import Operation

ACT, TIMES, FAULT, WEIGHT, HITS = "__act", "__times", "__fault", "__weight", "__hits"
BESIDE = (LEVEL, ACT, TIMES, FAULT)
RESTORE = "restore"
NEW, MET = "__n", "__m"
BULK_ROWS = 1_000_000
_NUMBERED = {Kind.INTEGRAL, Kind.DATE}


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows to be staged, which levels they can have, and at most how many of them belong to stored tuples."""

    rows: DataFrame
    levels: tuple[Level, ...]
    most_touched: int
    may_repeat: bool = False
    """Two of the rows may be for one tuple, or new ones with one key: to be looked for when they are written."""
    few: bool = False
    """They are few, and can be on the driver."""


# in place: UPDATE and DELETE ------------------------------------------------------------------------------------------


def select_changed(
    working: Working, act: Operation, new: Mapping[str, str], relation: str, alias: str, where: str
) -> str:
    """The SELECT of an update or delete in place: Tables 3 and 4 on every live tuple that meets the condition."""
    layout, number = working.table.layout, int(act)
    stored = setwise.changed(layout, working.vn, act, new, row=alias)
    nulls = {f"({sql}) IS NULL": (Fault.NULL_VALUE, c) for c, sql in new.items() if c in required(layout)}
    times = f"{quoted(alias)}.{COUNT}" if layout.schema.is_bag else "1L"
    beside = {
        LEVEL: _level(working, act, alias),
        ACT: str(number),
        TIMES: times,
        FAULT: first_fault(nulls, layout, alias),
    }
    items = [f"{sql} AS {quoted(name)}" for name, sql in (stored | beside).items()]
    condition = f"{setwise.live(layout, row=alias)} AND ({where})"
    return f"SELECT {', '.join(items)} FROM {relation} AS {quoted(alias)} WHERE {condition}"


def _level(working: Working, act: str | Operation, row: str) -> str:
    """An insert of this very transaction that it deletes again: a new tuple turns void, a revived one is restored."""
    if not working.staged:
        return f"'{Level.OVERLAY.value}'"
    undone = setwise.own_insert_deleted(working.table.layout, working.vn, act, row=row)
    revived = f"{quoted(row)}.{RID} < {working.first_rid}"
    return f"CASE WHEN {undone} AND {revived} THEN '{RESTORE}' ELSE '{Level.OVERLAY.value}' END"


# by key: INSERT and signed bags ---------------------------------------------------------------------------------------


def inserted(working: Working, new: DataFrame) -> Staged:
    """Table 2: new rows, each a new tuple unless its key belongs to a logically deleted one."""
    layout = working.table.layout
    if layout.schema.is_bag:
        return applied(working, new.withColumn(WEIGHT, F.lit(1).cast("bigint")))
    rows = given(working, new)
    met = _Met.of(working, rows, rows.together, layout.schema.key)
    act = str(int(Operation.INSERT))
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.current}
    faults = null_faults(layout, values) | {setwise.live(layout, row=MET): (Fault.DUPLICATE, "")}
    staged = met.staged(act, values, {ACT: act, TIMES: "1L", FAULT: first_fault(faults, layout, NEW)})
    return replace(staged, may_repeat=True)


def filled(working: Working, new: DataFrame) -> Staged:
    """Rows for a table that holds none: new tuples, without a look at what is there. Their keys are known to differ."""
    layout = working.table.layout
    rows = new.select(*_typed(layout))
    if layout.schema.is_bag:
        rows = rows.groupBy(*map(_col, layout.schema.names)).agg(F.count(F.lit(1)).alias(COUNT))
    values = {c: quoted(c) for c in layout.current}
    made = setwise.inserted(layout, working.vn, values, f"{working.next_rid}L + monotonically_increasing_id()")
    times = COUNT if layout.schema.is_bag else "1L"
    beside = {LEVEL: f"'{Level.BASE.value}'", ACT: "1", TIMES: times, FAULT: NO_FAULT}
    return Staged(rows.select(*(F.expr(sql).alias(name) for name, sql in {**made, **beside}.items())), (Level.BASE,), 0)


def applied(working: Working, changes: DataFrame) -> Staged:
    """A signed bag of rows, as `__weight` says: what is deleted must be there, what is added must not."""
    rows = given(working, changes)
    net = _net(working, rows, F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
    return _applied(working, rows, net, {})


def applied_net(working: Working, changes: DataFrame, expected: float) -> Staged:
    """As `applied`, for a change that is net, with at most one entry per distinct row; about so many are expected."""
    typed = changes.select(F.col(WEIGHT).cast("bigint").alias(WEIGHT), *_typed(working.table.layout))
    rows = given(working, typed, expected)
    return _applied(working, rows, rows.together.where(F.col(WEIGHT) != 0), {})


def applied_hits(working: Working, changes: DataFrame) -> Staged:
    """As `applied`, for the signed rows of a MERGE, which say in `__hits` how often the source changes a stored row.

    A row that it changes twice is ambiguous, even if the changes cancel out.
    """
    rows = given(working, changes)
    net = _net(working, rows, F.sum(WEIGHT).alias(WEIGHT), F.sum(HITS).alias(HITS))
    told = net.where((F.col(WEIGHT) != 0) | (F.col(HITS) > 1))
    return _applied(working, rows, told, {f"{NEW}.{HITS} > 1": (Fault.AMBIGUOUS, "")}, F.sum(HITS).alias(HITS))


def deleted_by_key(working: Working, gone: DataFrame) -> Staged:
    """Rows to delete, of which the key is given; each must be there, and be named once."""
    layout = working.table.layout
    rows = given(working, gone.select(*map(_col, layout.schema.key)))
    counted = rows.together.groupBy(*map(_col, layout.schema.key)).agg(F.count(F.lit(1)).alias("__dels"))
    met = _Met.of(working, rows, counted, layout.schema.key)
    act = str(int(Operation.DELETE))
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.schema.key}
    values |= {c: f"CAST(NULL AS {layout.type_of(c)})" for c in layout.updatable}
    absent = f"NOT coalesce({setwise.live(layout, row=MET)}, FALSE)"
    faults = {f"{NEW}.__dels > 1 OR {absent}": (Fault.IMPOSSIBLE, "")}
    return met.staged(act, values, {ACT: act, TIMES: "1L", FAULT: first_fault(faults, layout, NEW)})


def _typed(layout: Layout) -> list[Column]:
    """The table's columns, in its types."""
    return [F.expr(f"CAST({quoted(c)} AS {layout.type_of(c)})").alias(c) for c in layout.schema.names]


def _net(working: Working, changes: Given, *sums: Column) -> DataFrame:
    """At most one entry per distinct row."""
    return changes.together.groupBy(*map(_col, working.table.schema.names)).agg(*sums)


def _applied(working: Working, rows: Given, net: DataFrame, faults: Faults, *sums: Column) -> Staged:
    """A net change that was made of `rows`; `sums` are kept per key, for `faults` to speak of."""
    layout = working.table.layout
    if layout.schema.is_bag:
        return _to_bag(_Met.of(working, rows, net, layout.schema.names), faults)
    pairs = _pairs(net, layout, *sums)
    return _by_key(_Met.of(working, rows, pairs, layout.schema.key), faults)


def _to_bag(met: _Met, faults: Faults) -> Staged:
    """A bag's tuple is a row with its count; weights are added to it."""
    layout = met.working.table.layout
    before = f"(CASE WHEN {setwise.live(layout, row=MET)} THEN {MET}.{COUNT} ELSE 0L END)"
    after = f"({before} + {NEW}.{WEIGHT})"
    act = f"CASE WHEN {after} <= 0 THEN 3 WHEN {before} = 0 THEN 1 ELSE 2 END"
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.schema.names} | {COUNT: after}
    found = {**faults, **null_faults(layout, values), f"{after} < 0": (Fault.IMPOSSIBLE, "")}
    reported = f"CASE WHEN {NEW}.{WEIGHT} > 0 THEN 1 ELSE 3 END"
    beside = {ACT: reported, TIMES: f"abs({NEW}.{WEIGHT})", FAULT: first_fault(found, layout, NEW)}
    return met.staged(act, values, beside)


def _by_key(met: _Met, faults: Faults) -> Staged:
    """Per key at most one row goes and at most one comes; both together are an update."""
    layout = met.working.table.layout
    act = f"CASE WHEN {NEW}.__dels = 0 THEN 1 WHEN {NEW}.__adds = 0 THEN 3 ELSE 2 END"
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.schema.key}
    values |= {c: f"{NEW}.__new_{i}.v" for i, c in enumerate(layout.updatable)}
    nulls = {f"{NEW}.__adds > 0 AND ({sql})": fault for sql, fault in null_faults(layout, values).items()}
    found = {**faults, **nulls, **_pair_faults(layout)}
    return met.staged(act, values, {ACT: act, TIMES: "1L", FAULT: first_fault(found, layout, NEW)})


def _pair_faults(layout: Layout) -> Faults:
    """What goes must be there once, with these very values; what comes must not, unless in its place."""
    live = setwise.live(layout, row=MET)
    faults = {
        f"{NEW}.__dels > 1": (Fault.IMPOSSIBLE, ""),
        f"{NEW}.__adds > 1": (Fault.DUPLICATE, ""),
        f"{NEW}.__dels = 0 AND {live}": (Fault.DUPLICATE, ""),
        f"{NEW}.__dels > 0 AND NOT coalesce({live}, FALSE)": (Fault.IMPOSSIBLE, ""),
    }
    pairs = ((f"{NEW}.__old_{i}.v", c) for i, c in enumerate(layout.updatable))
    same = " AND ".join(same_sql(old, f"{MET}.{quoted(c)}", layout, c) for old, c in pairs) or "TRUE"
    return faults | {f"{NEW}.__dels > 0 AND NOT ({same})": (Fault.IMPOSSIBLE, "")}


def _pairs(net: DataFrame, layout: Layout, *sums: Column) -> DataFrame:
    """Per key, how many rows come and go, and the values of one of each."""
    comes, goes = F.col(WEIGHT) > 0, F.col(WEIGHT) < 0
    weights = [
        F.sum(F.when(comes, F.col(WEIGHT)).otherwise(0)).alias("__adds"),
        F.sum(F.when(goes, -F.col(WEIGHT)).otherwise(0)).alias("__dels"),
    ]
    boxes = [F.struct(_col(c).alias("v")) for c in layout.updatable]
    new = [F.first(F.when(comes, box), ignorenulls=True).alias(f"__new_{i}") for i, box in enumerate(boxes)]
    old = [F.first(F.when(goes, box), ignorenulls=True).alias(f"__old_{i}") for i, box in enumerate(boxes)]
    return net.groupBy(*map(_col, layout.schema.key)).agg(*weights, *sums, *new, *old)


def merged(working: Working, new: DataFrame, values: Mapping[str, str], gone: str, expected: float) -> Staged:
    """One row per key, merged into what is stored: `values` gives each column and `gone` whether the row goes.

    Both are SQL over the new row (`__n`) and the stored one (`__m`, all null where there is none). What stays as it was
    is not written.
    """
    layout = working.table.layout
    rows = given(working, new, expected)
    met = _Met.of(working, rows, rows.together, layout.schema.key)
    live = f"coalesce({setwise.live(layout, row=MET)}, FALSE)"
    typed = {c: f"CAST({sql} AS {layout.type_of(c)})" for c, sql in values.items()}
    act = f"CASE WHEN {gone} THEN 3 WHEN {live} THEN 2 ELSE 1 END"
    same = " AND ".join(same_sql(typed[c], f"{MET}.{quoted(c)}", layout, c) for c in layout.updatable) or "TRUE"
    moot = f"CASE WHEN {gone} THEN NOT {live} ELSE {live} AND {same} END"
    staged = met.where(f"NOT ({moot})").staged(act, typed, {ACT: act, TIMES: "1L", FAULT: NO_FAULT})
    return replace(staged, may_repeat=True)


def stored_value(working: Working, name: str) -> str:
    """A column of the stored row, in `merged`: null unless the row is there."""
    return f"(CASE WHEN {setwise.live(working.table.layout, row=MET)} THEN {MET}.{quoted(name)} END)"


# meeting what is stored -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Met:
    """New rows beside the stored tuples that they meet, if any: `__n` left joined to `__m`."""

    working: Working
    rows: DataFrame
    count: int
    levels: tuple[Level, ...]
    is_together: bool

    @classmethod
    def of(cls, working: Working, rows: Given, new: DataFrame, key: Sequence[str]) -> _Met:
        """`new` was made of `rows` and has none but their keys, at most as many times."""
        layout = working.table.layout
        found = extent(layout, rows, key[0])
        met = _stored(working, rows, found, key)
        on = " AND ".join(same_sql(f"{NEW}.{quoted(c)}", f"{MET}.{quoted(c)}", layout, c) for c in key)
        joined = new.alias(NEW).join(small(met.rows, found.count).alias(MET), F.expr(on), "left")
        levels = (Level.BASE,) if met.is_empty else (Level.BASE, Level.OVERLAY)
        return cls(working, joined, found.count, levels if found.count else (), rows.few is not None)

    def where(self, condition: str) -> _Met:
        return replace(self, rows=self.rows.where(condition))

    def staged(self, act: str, values: Mapping[str, str], beside: Mapping[str, str]) -> Staged:
        """The tuples after `act`, by Tables 2-4."""
        layout, vn = self.working.table.layout, self.working.vn
        absent, fresh = f"{MET}.{RID} IS NULL", f"{self.working.next_rid}L + monotonically_increasing_id()"
        created = setwise.inserted(layout, vn, values, fresh)
        changed = setwise.changed(layout, vn, act, {c: values[c] for c in layout.updatable}, row=MET)
        items = {c: f"CASE WHEN {absent} THEN {created[c]} ELSE {changed[c]} END" for c in created}
        level = f"CASE WHEN {absent} THEN '{Level.BASE.value}' ELSE {_level(self.working, act, MET)} END"
        columns = (F.expr(sql).alias(name) for name, sql in {**items, LEVEL: level, **beside}.items())
        return Staged(self._arranged(values).select(*columns), self.levels, self.count, few=self.is_together)

    def _arranged(self, values: Mapping[str, str]) -> DataFrame:
        """In as many partitions as there shall be files; a load of many rows by the clustering columns, if any."""
        if self.is_together:
            return self.rows
        cluster_by = self.working.table.cluster_by
        if cluster_by and self.count > SMALL_FILE_ROWS:
            is_old = F.expr(f"{MET}.{RID} IS NOT NULL")  # base and overlay apart, as their files are
            return clustered(self.rows, self.count, is_old, *(F.expr(values[name]) for name in cluster_by))
        return self.rows if self.count > BULK_ROWS else self.rows.hint("rebalance", 1)


def _stored(working: Working, rows: Given, found: Extent, key: Sequence[str]) -> Given:
    """The stored tuples that have those keys, each in its newest state."""
    layout, table = working.table.layout, working.table
    files = found.files(layout, working.current.files)
    if not files:
        return Given(table.tuples(()), NO_ROWS)
    keys = rows.rows.select(*(_comparable(layout, c).alias(f"__k{i}") for i, c in enumerate(key)))
    same = _all(_comparable(layout, c).eqNullSafe(F.col(f"__k{i}")) for i, c in enumerate(key))
    if rows.few is not None:
        near = _telling(layout, rows, found, table.tuples(files).where(_near(layout, rows, key)), key)
        newest = newest_states(working, near.join(small(keys, found.count), same, "left_semi"))
        if newest is not None:
            return newest
    # what hides a tuple has its key, and so is in one of the files, or hides what is not met
    latest = table.latest(files, tuple(f for f in files if f.level is Level.OVERLAY))
    return Given(_telling(layout, rows, found, latest, key).join(small(keys, found.count), same, "left_semi"))


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
        names = [name.casefold() for name in rows.rows.columns]
        values = {c: rows.few.column(names.index(c.casefold())) for c in key if c in known}
        counts = {c: pc.count_distinct(column).as_py() for c, column in values.items() if not column.null_count}
        best = max(counts, key=lambda c: counts[c], default=None)
    if best is None:
        return tuples
    there = small(rows.rows.select(_col(best).alias("__known")), found.count)
    return tuples.join(there, _col(best) == F.col("__known"), "left_semi")


def _near(layout: Layout, rows: Given, key: Sequence[str]) -> str:
    """What the keys of few rows say of each column alone: files, row groups and pages are skipped by it."""
    assert rows.few is not None
    known = []
    for column in key:
        place = [name.casefold() for name in rows.rows.columns].index(column.casefold())
        kind = kind_of(layout.type_of(column))
        if kind is kind_of(rows.rows.schema[place].dataType.simpleString()):
            known.append(among(column, frozenset(rows.few.column(place).to_pylist()), kind))
    return spark_text(conjunction(*(condition for condition in known if condition is not None)))


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)


def _comparable(layout: Layout, name: str) -> Column:
    return F.expr(_comparable_sql(quoted(name), layout.type_of(name)))


def _comparable_sql(sql: str, kind: str) -> str:
    """Maps and variants cannot be compared: their text is."""
    folded = kind.lower()
    if folded.startswith("map<"):
        return f"to_json(array_sort(map_entries({sql})))"
    return f"to_json(struct({sql}))" if "map<" in folded or "variant" in folded else sql


def same_sql(one: str, other: str, layout: Layout, name: str) -> str:
    kind = layout.type_of(name)
    return f"{_comparable_sql(one, kind)} <=> {_comparable_sql(other, kind)}"


def _col(name: str) -> Column:
    return F.col(quoted(name))
