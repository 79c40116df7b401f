"""Staging: one write job per statement; what it observed decides whether the statement stands."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from matview.errors import AmbiguousMerge, BadValue, DuplicateKey, ImpossibleOperation, MatviewError, NullKey
from matview.maintain.rows import ACT, BESIDE, FAULT, RESTORE, TIMES, Fault, Staged
from matview.maintain.working import Counts, Working
from matview.storage.engine import LEVEL, Written
from matview.storage.files import storage_failure
from matview.storage.snapshot import DataFile, Level
from matview.versions.layout import RID
from matview.versions.tuples import Operation

SMALL_ROWS = 200_000


def stage(working: Working, staged: Staged) -> Counts:
    """Writes the rows of a statement; raises, and leaves the transaction as it was, if one of them cannot be."""
    try:
        rows, levels = _carried(working, staged)
        written = _write(working, rows, levels)
    finally:
        working.let_go()
    try:
        _check(working, written)
    except MatviewError:
        working.replaced += written.files
        raise
    return _take_over(working, written)


def _carried(working: Working, staged: Staged) -> tuple[DataFrame, tuple[Level, ...]]:
    """The overlay holds each tuple once per transaction: what earlier statements staged comes along unless touched."""
    if not working.staged_overlay:
        return staged.rows, staged.levels
    rows = working.hold(staged.rows)
    touched = F.broadcast(rows.select(RID))
    earlier = working.table.tuples(working.staged_overlay).join(touched, RID, "left_anti")
    beside = {ACT: F.lit(None).cast("int"), TIMES: F.lit(0).cast("bigint"), FAULT: F.lit(None).cast("string")}
    earlier = earlier.withColumns(beside)
    names = [F.col(f"`{n.replace('`', '``')}`") for n in rows.columns]
    kept = rows.where(F.col(LEVEL) != RESTORE).unionByName(earlier.select(*names))
    return kept.hint("rebalance", 1), (Level.BASE, Level.OVERLAY)


def _write(working: Working, rows: DataFrame, levels: tuple[Level, ...]) -> Written:
    def times(act: Operation) -> Column:
        return F.coalesce(F.sum(F.when(F.col(ACT) == int(act), F.col(TIMES))), F.lit(0))

    observe = {
        "inserted": times(Operation.INSERT),
        "updated": times(Operation.UPDATE),
        "deleted": times(Operation.DELETE),
        "greatest_rid": F.max(RID),
        "fault": F.min(FAULT),
    }
    drop = tuple(name for name in BESIDE if name != LEVEL)
    try:
        return working.table.engine.write(rows, working.table.files, working.new_directory(), levels, observe, drop)
    except OSError as error:
        raise storage_failure(error, "writing tuples") from error


def _check(working: Working, written: Written) -> None:
    fault = written.observed.get("fault")
    if isinstance(fault, str):
        raise _error(working, fault)
    if repeated := _repeated_key(working, written.files):
        raise DuplicateKey(f"{working.table.name}: the key {repeated} stands twice among the rows to insert")


def _error(working: Working, fault: str) -> MatviewError:
    kind, column, shown = fault.split(":", 2)
    name = working.table.name
    match Fault(kind):
        case Fault.DUPLICATE:
            return DuplicateKey(f"{name} has a row with the key {shown} already")
        case Fault.IMPOSSIBLE:
            return ImpossibleOperation(f"{name} has no such row to change: {shown}")
        case Fault.AMBIGUOUS:
            return AmbiguousMerge(f"{name}: several rows of the source meet the row {shown}")
        case Fault.NULL_KEY:
            return NullKey(f"{name}: key column {column!r} is null in {shown}")
        case Fault.NULL_VALUE:
            return BadValue(f"{name}: column {column!r} takes no nulls; a row {shown} has one")


def _repeated_key(working: Working, files: tuple[DataFile, ...]) -> str | None:
    """A key that stands twice among new tuples, as JSON; new tuples are the base files just written."""
    key = list(working.table.schema.key)
    new = [f for f in files if f.level is Level.BASE]
    if not key or sum(f.rows for f in new) < 2:
        return None
    if sum(f.rows for f in new) > SMALL_ROWS:
        found = _repeated_by_spark(working, new, key)
    else:
        found = _repeated_by_arrow(working, new, key)
    return None if found is None else json.dumps(found, default=str)


def _repeated_by_arrow(working: Working, files: list[DataFile], key: list[str]) -> Mapping[str, object] | None:
    tables = working.table.files.read_columns([f.path for f in files], key)
    numbered = pa.concat_tables(tables).rename_columns([f"k{i}" for i in range(len(key))])
    counted = numbered.group_by(numbered.column_names).aggregate([([], "count_all")])
    twice = counted.filter(pa.compute.greater(counted["count_all"], 1)).slice(0, 1).to_pylist()
    return {name: twice[0][f"k{i}"] for i, name in enumerate(key)} if twice else None


def _repeated_by_spark(working: Working, files: list[DataFile], key: list[str]) -> Mapping[str, object] | None:
    columns = [F.col(f"`{name.replace('`', '``')}`") for name in key]
    twice = working.table.tuples(files).groupBy(*columns).count().where("count > 1").limit(1).collect()
    return {name: twice[0][i] for i, name in enumerate(key)} if twice else None


def _take_over(working: Working, written: Written) -> Counts:
    kept = tuple(f for f in working.staged if f.level is Level.BASE)
    working.replaced += working.staged_overlay
    working.staged = kept + written.files
    greatest = written.observed.get("greatest_rid")
    if isinstance(greatest, int):
        working.next_rid = max(working.next_rid, greatest + 1)
    seen = {name: int(str(written.observed.get(name) or 0)) for name in ("inserted", "updated", "deleted")}
    counts = Counts(**seen)
    working.counts += counts
    return counts
