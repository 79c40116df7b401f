"""From what a statement asks to the tuples it leaves: the set-oriented form of section 4.2 on Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from matview.algebra.nodes import WEIGHT
from matview.maintain.change.comparing import grouped, same_sql
from matview.maintain.change.faults import NO_FAULT, Fault, Faults, first_fault, null_faults
from matview.maintain.change.given import Given, given
from matview.maintain.change.meeting import MET, NEW, Met
from matview.maintain.change.net import net_of_few
from matview.maintain.change.pairs import ADDS, DELS, pairs, pairs_of_few
from matview.maintain.change.staged import ACT, FAULT, TIMES, Staged
from matview.maintain.change.working import Working
from matview.plan.narrow import LISTED
from matview.storage.few import are_few
from matview.storage.snapshot import Level
from matview.versions import setwise
from matview.versions.layout import COUNT, LEVEL, Layout
from matview.versions.predicates import kind_of
from matview.versions.text import quoted
from matview.versions.tuples import Operation

HITS = "__hits"


# by key: INSERT and signed bags ---------------------------------------------------------------------------------------


def inserted(working: Working, new: DataFrame) -> Staged:
    """Table 2: new rows, each a new tuple unless its key belongs to a logically deleted one."""
    layout = working.table.layout
    if layout.schema.is_bag:
        return applied(working, new.withColumn(WEIGHT, F.lit(1).cast("bigint")))
    return inserted_given(working, given(working, new))


def inserted_given(working: Working, rows: Given) -> Staged:
    """As `inserted`, for rows in the table's own types; those for a bag are net, each with its weight."""
    layout = working.table.layout
    if layout.schema.is_bag:
        return applied_net(working, rows)
    met = Met.of(working, rows, layout.schema.key)
    act = str(int(Operation.INSERT))
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.current}
    faults = null_faults(layout, values) | {setwise.live(layout, row=MET): (Fault.DUPLICATE, "")}
    staged = met.staged(act, values, {ACT: act, TIMES: "1L", FAULT: first_fault(faults, layout, NEW)})
    return replace(staged, may_repeat=True)


def filled(working: Working, new: DataFrame, expected: float = math.inf) -> Staged:
    """Rows for a table that holds none: new tuples, without a look at what is there. Their keys are known to differ.

    They are sorted by what they will be looked up by, so that few rows are found in few pages.
    """
    layout = working.table.layout
    rows = new.select(*_typed(layout))
    if layout.schema.is_bag:
        rows = grouped(rows, layout, F.count(F.lit(1)).alias(COUNT))
    few = given(working, rows, expected) if are_few(expected) else None
    rows = rows if few is None else few.together
    if by := working.table.cluster_by or _looked_up_by(layout):
        rows = rows.sortWithinPartitions(*map(_col, by))
    values = {c: quoted(c) for c in layout.current}
    made = setwise.inserted(layout, working.vn, values, f"{working.next_rid}L + monotonically_increasing_id()")
    times = COUNT if layout.schema.is_bag else "1L"
    beside = {LEVEL: f"'{Level.BASE.value}'", ACT: "1", TIMES: times, FAULT: NO_FAULT}
    columns = [f"{sql} AS {quoted(name)}" for name, sql in {**made, **beside}.items()]
    return Staged(lambda: rows.selectExpr(*columns), (Level.BASE,), 0, few=few is not None and few.few is not None)


def _looked_up_by(layout: Layout) -> tuple[str, ...]:
    """The first column of the key, or of a bag's rows, that pages can be skipped by."""
    columns = layout.schema.key or layout.schema.names
    return next(((c,) for c in columns if kind_of(layout.type_of(c)) in LISTED), ())


def applied(working: Working, changes: DataFrame) -> Staged:
    """A signed bag of rows, as `__weight` says: what is deleted must be there, what is added must not."""
    rows = given(working, changes)
    if (few := net_of_few(working.table.engine, rows)) is not None:
        return applied_net(working, few)
    net = _net(working, rows, F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
    return _applied(working, rows, net, {})


def net_change(working: Working, changes: DataFrame, expected: float) -> Given:
    """A signed bag, of about so many rows, in the table's types."""
    typed = changes.select(F.col(WEIGHT).cast("bigint").alias(WEIGHT), *_typed(working.table.layout))
    return given(working, typed, expected)


def applied_net(working: Working, rows: Given) -> Staged:
    """As `applied`, for a change that is net, with at most one entry per distinct row."""
    layout = working.table.layout
    if layout.schema.is_bag:
        return _to_bag(Met.of(working, rows, layout.schema.names).where(f"{NEW}.{WEIGHT} != 0"), {})
    if rows.few is not None:
        paired = pairs_of_few(working.table.engine, rows.few, rows.schema, layout)
        return _by_key(Met.of(working, paired, layout.schema.key), {})
    return _applied(working, rows, rows.rows.where(F.col(WEIGHT) != 0), {})


def applied_hits(working: Working, changes: DataFrame) -> Staged:
    """As `applied`, for the signed rows of a MERGE, which say in `__hits` how often the source changes a stored row.

    A row that it changes twice is ambiguous, even if the changes cancel out.
    """
    rows = given(working, changes)
    if (few := net_of_few(working.table.engine, rows, once=(HITS,))) is not None:
        return applied_net(working, few)
    net = _net(working, rows, F.sum(WEIGHT).alias(WEIGHT), F.sum(HITS).alias(HITS))
    told = net.where((F.col(WEIGHT) != 0) | (F.col(HITS) > 1))
    return _applied(working, rows, told, {f"{NEW}.{HITS} > 1": (Fault.AMBIGUOUS, "")}, F.sum(HITS).alias(HITS))


def deleted_by_key(working: Working, gone: DataFrame) -> Staged:
    """Rows to delete, of which the key is given; each must be there, and be named once."""
    layout = working.table.layout
    rows = given(working, gone.select(*map(_col, layout.schema.key)))
    counted = rows.together.groupBy(*map(_col, layout.schema.key)).agg(F.count(F.lit(1)).alias(DELS))
    met = Met.of(working, rows, layout.schema.key, counted)
    act = str(int(Operation.DELETE))
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.schema.key}
    values |= {c: f"CAST(NULL AS {layout.type_of(c)})" for c in layout.updatable}
    absent = f"NOT coalesce({setwise.live(layout, row=MET)}, FALSE)"
    faults = {f"{NEW}.{DELS} > 1 OR {absent}": (Fault.IMPOSSIBLE, "")}
    return met.staged(act, values, {ACT: act, TIMES: "1L", FAULT: first_fault(faults, layout, NEW)})


def _typed(layout: Layout) -> list[Column]:
    """The table's columns, in its types."""
    return [F.expr(f"CAST({quoted(c)} AS {layout.type_of(c)}) AS {quoted(c)}") for c in layout.schema.names]


def _net(working: Working, changes: Given, *sums: Column) -> DataFrame:
    """At most one entry per distinct row."""
    return grouped(changes.together, working.table.layout, *sums)


def _applied(working: Working, rows: Given, net: DataFrame, faults: Faults, *sums: Column) -> Staged:
    """A net change that was made of `rows`; `sums` are kept per key, for `faults` to speak of."""
    layout = working.table.layout
    if layout.schema.is_bag:
        return _to_bag(Met.of(working, rows, layout.schema.names, net), faults)
    return _by_key(Met.of(working, rows, layout.schema.key, pairs(net, layout, *sums)), faults)


def _to_bag(met: Met, faults: Faults) -> Staged:
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


def _by_key(met: Met, faults: Faults) -> Staged:
    """Per key at most one row goes and at most one comes; both together are an update."""
    layout = met.working.table.layout
    act = f"CASE WHEN {NEW}.{DELS} = 0 THEN 1 WHEN {NEW}.{ADDS} = 0 THEN 3 ELSE 2 END"
    values = {c: f"{NEW}.{quoted(c)}" for c in layout.schema.key}
    values |= {c: f"{NEW}.__new_{i}.v" for i, c in enumerate(layout.updatable)}
    nulls = {f"{NEW}.{ADDS} > 0 AND ({sql})": fault for sql, fault in null_faults(layout, values).items()}
    found = {**faults, **nulls, **_pair_faults(layout)}
    return met.staged(act, values, {ACT: act, TIMES: "1L", FAULT: first_fault(found, layout, NEW)})


def _pair_faults(layout: Layout) -> Faults:
    """What goes must be there once, with these very values; what comes must not, unless in its place."""
    live = setwise.live(layout, row=MET)
    faults = {
        f"{NEW}.{DELS} > 1": (Fault.IMPOSSIBLE, ""),
        f"{NEW}.{ADDS} > 1": (Fault.DUPLICATE, ""),
        f"{NEW}.{DELS} = 0 AND {live}": (Fault.DUPLICATE, ""),
        f"{NEW}.{DELS} > 0 AND NOT coalesce({live}, FALSE)": (Fault.IMPOSSIBLE, ""),
    }
    pairs = ((f"{NEW}.__old_{i}.v", c) for i, c in enumerate(layout.updatable))
    same = " AND ".join(same_sql(old, f"{MET}.{quoted(c)}", layout, c) for old, c in pairs) or "TRUE"
    return faults | {f"{NEW}.{DELS} > 0 AND NOT ({same})": (Fault.IMPOSSIBLE, "")}


def merged(working: Working, rows: Given, values: Mapping[str, str], gone: str) -> Staged:
    """One row per key, merged into what is stored: `values` gives each column and `gone` whether the row goes.

    Both are SQL over the new row (`__n`) and the stored one (`__m`, all null where there is none). What stays as it was
    is not written.
    """
    layout = working.table.layout
    met = Met.of(working, rows, layout.schema.key)
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


def _col(name: str) -> Column:
    return F.col(quoted(name))
