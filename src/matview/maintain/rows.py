"""From what a statement asks to the tuples it leaves: the set-oriented form of section 4.2 on Spark.

Every function gives *staged rows*: the stored columns of each touched tuple, and beside them

    __level    base (a new tuple), overlay (a new state of a stored one), restore (back to what was stored before)
    __act      what is reported: 1 insert, 2 update, 3 delete, `__times` times
    __fault    null, or why the row cannot be: a `Fault`, a colon, and the row's key
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from matview.maintain.assign import quoted
from matview.maintain.working import Working
from matview.spark.errors import translated
from matview.storage.engine import LEVEL
from matview.storage.snapshot import DataFile, Level
from matview.versions import setwise
from matview.versions.layout import COUNT, RID, Layout
from matview.versions.tuples import Operation

ACT, TIMES, FAULT, WEIGHT = "__act", "__times", "__fault", "__weight"
BESIDE = (LEVEL, ACT, TIMES, FAULT)
RESTORE = "restore"
NEW, MET = "__n", "__m"
BROADCAST_ROWS = 500_000
BULK_ROWS = 1_000_000
_BOUNDED = ("tinyint", "smallint", "int", "bigint", "string", "date")


class Fault(StrEnum):
    DUPLICATE = "duplicate"
    IMPOSSIBLE = "impossible"
    AMBIGUOUS = "ambiguous"
    NULL_KEY = "null key"
    NULL_VALUE = "null value"


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows to be staged, and which levels they can have."""

    rows: DataFrame
    levels: tuple[Level, ...]


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
        FAULT: _first_fault(nulls, layout, alias),
    }
    items = [f"{sql} AS {quoted(name)}" for name, sql in (stored | beside).items()]
    condition = f"{setwise.live(layout, row=alias)} AND ({where})"
    return f"SELECT {', '.join(items)} FROM {relation} AS {quoted(alias)} WHERE {condition}"


def required(layout: Layout) -> tuple[str, ...]:
    """The columns outside the key that take no nulls."""
    return tuple(c.name for c in layout.schema.columns if not c.nullable and c.name not in layout.schema.key)


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
    met = _Met.of(working, working.hold(new), layout.schema.key)
    act = str(int(Operation.INSERT))
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.current}
    faults = _null_faults(layout, values) | {setwise.live(layout, row=MET): (Fault.DUPLICATE, "")}
    return met.staged(act, values, {ACT: act, TIMES: "1L", FAULT: _first_fault(faults, layout, NEW)})


def applied(working: Working, changes: DataFrame, *, by_key: bool = False, merging: bool = False) -> Staged:
    """A signed bag of rows, as `__weight` says: what is deleted must be there, what is added must not.

    With `by_key` the rows to delete have only their key filled in. With `merging`, a tuple that is deleted twice was
    met by two rows of a MERGE's source.
    """
    net = _net(working, changes)
    return _applied_to_bag(working, net) if working.table.schema.is_bag else _by_key(working, net, by_key, merging)


def _net(working: Working, changes: DataFrame) -> DataFrame:
    """At most one entry per distinct row."""
    columns = [_col(c) for c in working.table.schema.names]
    return changes.groupBy(*columns).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)


def _applied_to_bag(working: Working, net: DataFrame) -> Staged:
    """A bag's tuple is a row with its count; weights are added to it."""
    layout = working.table.layout
    met = _Met.of(working, working.hold(net), layout.schema.names)
    before = f"(CASE WHEN {setwise.live(layout, row=MET)} THEN {MET}.{COUNT} ELSE 0L END)"
    after = f"({before} + {NEW}.{WEIGHT})"
    act = f"CASE WHEN {after} <= 0 THEN 3 WHEN {before} = 0 THEN 1 ELSE 2 END"
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.schema.names} | {COUNT: after}
    faults = _null_faults(layout, values) | {f"{after} < 0": (Fault.IMPOSSIBLE, "")}
    reported = f"CASE WHEN {NEW}.{WEIGHT} > 0 THEN 1 ELSE 3 END"
    beside = {ACT: reported, TIMES: f"abs({NEW}.{WEIGHT})", FAULT: _first_fault(faults, layout, NEW)}
    return met.staged(act, values, beside)


def _by_key(working: Working, net: DataFrame, by_key: bool, merging: bool) -> Staged:
    """Per key at most one row goes and at most one comes; both together are an update."""
    layout = working.table.layout
    key, others, live = layout.schema.key, layout.updatable, setwise.live(layout, row=MET)
    met = _Met.of(working, working.hold(_pairs(net, key, others)), key)
    act = f"CASE WHEN {NEW}.__dels = 0 THEN 1 WHEN {NEW}.__adds = 0 THEN 3 ELSE 2 END"
    coming = {c: f"{NEW}.__new_{i}.v" for i, c in enumerate(others)}
    values = {c: f"{NEW}.{quoted(c)}" for c in key} | coming
    twice = Fault.AMBIGUOUS if merging else Fault.IMPOSSIBLE
    faults = {
        f"{NEW}.__dels > 1": (twice, ""),
        f"{NEW}.__adds > 1": (Fault.AMBIGUOUS if merging else Fault.DUPLICATE, ""),
        f"{NEW}.__dels = 0 AND {live}": (Fault.DUPLICATE, ""),
        f"{NEW}.__dels > 0 AND NOT coalesce({live}, FALSE)": (Fault.IMPOSSIBLE, ""),
    }
    if not by_key and others:
        same = " AND ".join(_same(f"{NEW}.__old_{i}.v", f"{MET}.{quoted(c)}", layout, c) for i, c in enumerate(others))
        faults[f"{NEW}.__dels > 0 AND NOT ({same})"] = (Fault.IMPOSSIBLE, "")
    nulls = {f"{NEW}.__adds > 0 AND ({sql})": fault for sql, fault in _null_faults(layout, values).items()}
    return met.staged(act, values, {ACT: act, TIMES: "1L", FAULT: _first_fault(nulls | faults, layout, NEW)})


def _pairs(net: DataFrame, key: Sequence[str], others: Sequence[str]) -> DataFrame:
    comes, goes = F.col(WEIGHT) > 0, F.col(WEIGHT) < 0
    weights = [
        F.sum(F.when(comes, F.col(WEIGHT)).otherwise(0)).alias("__adds"),
        F.sum(F.when(goes, -F.col(WEIGHT)).otherwise(0)).alias("__dels"),
    ]
    boxes = [(c, F.struct(_col(c).alias("v"))) for c in others]
    new = [F.first(F.when(comes, box), ignorenulls=True).alias(f"__new_{i}") for i, (_, box) in enumerate(boxes)]
    old = [F.first(F.when(goes, box), ignorenulls=True).alias(f"__old_{i}") for i, (_, box) in enumerate(boxes)]
    return net.groupBy(*map(_col, key)).agg(*weights, *new, *old)


@dataclass(frozen=True)
class _Met:
    """New rows beside the stored tuples that they meet, if any: `__n` left joined to `__m`."""

    working: Working
    rows: DataFrame
    count: int
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, working: Working, new: DataFrame, key: Sequence[str]) -> _Met:
        layout = working.table.layout
        count, candidates = _candidates(working, new, key)
        latest = working.latest(candidates)
        keys = new.select(*(_comparable(layout, c).alias(f"__k{i}") for i, c in enumerate(key)))
        same = [_comparable(layout, c).eqNullSafe(F.col(f"__k{i}")) for i, c in enumerate(key)]
        met = latest.join(_small(keys, count), _all(same), "left_semi")
        on = " AND ".join(_same(f"{NEW}.{quoted(c)}", f"{MET}.{quoted(c)}", layout, c) for c in key)
        joined = new.alias(NEW).join(_small(met, count).alias(MET), F.expr(on), "left")
        return cls(working, joined, count, (Level.BASE, Level.OVERLAY) if candidates else (Level.BASE,))

    def staged(self, act: str, values: Mapping[str, str], beside: Mapping[str, str]) -> Staged:
        """The tuples after `act`, by Tables 2-4."""
        layout, vn = self.working.table.layout, self.working.vn
        absent, fresh = f"{MET}.{RID} IS NULL", f"{self.working.next_rid}L + monotonically_increasing_id()"
        created = setwise.inserted(layout, vn, values, fresh)
        changed = setwise.changed(layout, vn, act, {c: values[c] for c in layout.updatable}, row=MET)
        items = {c: f"CASE WHEN {absent} THEN {created[c]} ELSE {changed[c]} END" for c in created}
        level = f"CASE WHEN {absent} THEN '{Level.BASE.value}' ELSE {_level(self.working, act, MET)} END"
        rows = self.rows if self.count > BULK_ROWS else self.rows.hint("rebalance", 1)
        made = rows.select(*(F.expr(sql).alias(name) for name, sql in {**items, LEVEL: level, **beside}.items()))
        return Staged(made, self.levels)


def _candidates(working: Working, new: DataFrame, key: Sequence[str]) -> tuple[int, tuple[DataFile, ...]]:
    """How many new rows there are, and the files that can hold their keys by the statistics of the first key column."""
    first = _col(key[0])
    bounded = working.table.engine.struct(working.table.layout.columns)[key[0]].dataType.simpleString() in _BOUNDED
    extremes = [F.min(first), F.max(first)] if bounded else [F.lit(None), F.lit(None)]
    with translated("reading the rows to insert"):
        count, least, greatest = new.agg(F.count(F.lit(1)), *extremes).collect()[0]
    files = working.current.files
    if not count:
        return 0, ()
    return count, tuple(f for f in files if _overlaps(f, key[0], least, greatest))


def _overlaps(file: DataFile, column: str, least: object, greatest: object) -> bool:
    low, high = file.minimum.get(column), file.maximum.get(column)
    if least is None or low is None or not type(least) is type(low) is type(high) is type(greatest):
        return True
    return bool(low <= greatest and least <= high)  # type: ignore[operator]


def _small(rows: DataFrame, count: int) -> DataFrame:
    return F.broadcast(rows) if count <= BROADCAST_ROWS else rows


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


def _same(one: str, other: str, layout: Layout, name: str) -> str:
    kind = layout.type_of(name)
    return f"{_comparable_sql(one, kind)} <=> {_comparable_sql(other, kind)}"


# faults ---------------------------------------------------------------------------------------------------------------


def _null_faults(layout: Layout, values: Mapping[str, str]) -> dict[str, tuple[Fault, str]]:
    keys = {f"{values[c]} IS NULL": (Fault.NULL_KEY, c) for c in layout.schema.key}
    return keys | {f"{values[c]} IS NULL": (Fault.NULL_VALUE, c) for c in required(layout)}


def _first_fault(faults: Mapping[str, tuple[Fault, str]], layout: Layout, row: str) -> str:
    """The first condition that holds, as `fault:column:key`; null where none does."""
    if not faults:
        return "CAST(NULL AS string)"
    names = layout.schema.key or layout.schema.names
    shown = f"to_json(struct({', '.join(f'{quoted(row)}.{quoted(c)}' for c in names)}))"
    whens = " ".join(
        f"WHEN {sql} THEN concat({_literal(f'{fault.value}:{column}:')}, {shown})"
        for sql, (fault, column) in faults.items()
    )
    return f"CASE {whens} END"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _col(name: str) -> Column:
    return F.col(quoted(name))
