"""Staging: one write job per statement; what it observed decides whether the statement stands."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from matview.errors import DuplicateKey, MatviewError
from matview.local.reach import MOST_CHANGED
from matview.maintain.change import faults
from matview.maintain.change.beside import Side, computed
from matview.maintain.change.comparing import same_sql
from matview.maintain.change.staged import ACT, BESIDE, FAULT, RESTORE, STAGED_TYPES, TIMES, Staged
from matview.maintain.change.working import Counts, Working
from matview.spark.errors import translated
from matview.storage.engine import UNCOMMITTED, Written, small
from matview.storage.faults import storage_failure
from matview.storage.few import are_few, arrow_schema
from matview.storage.files import Files
from matview.storage.fold import SMALL_FILE_ROWS
from matview.storage.snapshot import DataFile, Level
from matview.versions.layout import LEVEL, RID
from matview.versions.predicates import Kind, kind_of
from matview.versions.text import quoted
from matview.versions.tuples import Operation

SMALL_ROWS = 200_000
_BESIDE = tuple(name for name in BESIDE if name != LEVEL)


def stage(working: Working, staged: Staged) -> Counts:
    """Writes the rows of a statement; raises, and leaves the transaction as it was, if one of them cannot be."""
    try:
        written = _write(working, staged) if staged.levels else None
    finally:
        working.held.let_go()
    if written is None:
        return Counts()
    try:
        _check(working, staged, written)
    except MatviewError:
        working.replaced += written.files
        raise
    return _take_over(working, staged, written)


def _carried(working: Working, staged: Staged) -> DataFrame:
    """The overlay holds each tuple once per transaction: what earlier statements staged comes along unless touched.

    New tuples touch none, so they pass by, as they come.
    """
    if not _replaced(working, staged):
        return staged.made()
    rows = working.held.hold(staged.made())
    new, touched = rows.where(F.col(LEVEL) == Level.BASE.value), rows.where(F.col(LEVEL) != Level.BASE.value)
    known = small(touched.select(RID), staged.most_touched)
    earlier = working.table.tuples(working.staged_overlay).join(known, RID, "left_anti")
    beside = {ACT: F.lit(None).cast("int"), TIMES: F.lit(0).cast("bigint"), FAULT: F.lit(None).cast("string")}
    names = map(_col, rows.columns)
    overlay = touched.unionByName(earlier.withColumns(beside).select(*names)).hint("rebalance", 1)
    return new.unionByName(overlay) if Level.BASE in staged.levels else overlay


def _replaced(working: Working, staged: Staged) -> tuple[DataFile, ...]:
    """The files of earlier statements that a statement writes anew."""
    return working.staged_overlay if Level.OVERLAY in staged.levels else ()


def _write(working: Working, staged: Staged) -> Written:
    """At most one job; few tuples are fetched by it, or are here already, and written here."""
    table, directory = working.table, working.new_directory()
    try:
        if staged.here is not None and (here := _carried_here(working, staged, staged.here)) is not None:
            return _write_few(working, here, directory)
        rows = _carried(working, staged)
        if _may_come_here(working, staged):
            return _write_few(working, _fetched(working, rows), directory)
        return table.engine.write(
            rows, table.files, directory, staged.levels, _observed(working), _BESIDE, unless=f"{LEVEL} = '{RESTORE}'"
        )
    except OSError as error:
        raise storage_failure(error, "writing tuples") from error


def _observed(working: Working) -> dict[str, Column]:
    def times(act: Operation) -> Column:
        return F.coalesce(F.sum(F.when(F.col(ACT) == int(act), F.col(TIMES))), F.lit(0))

    return {
        "inserted": times(Operation.INSERT),
        "updated": times(Operation.UPDATE),
        "deleted": times(Operation.DELETE),
        "greatest_rid": F.max(RID),
        "fault": F.min(FAULT),
        **{name: F.max(F.expr(touched)) for name, touched in _touched(working).items()},
    }


def _may_come_here(working: Working, staged: Staged) -> bool:
    carried = sum(f.rows for f in _replaced(working, staged))
    travels = arrow_schema(working.table.engine.struct(working.table.layout.columns)) is not None
    return staged.few and travels and are_few(staged.most_touched + carried)


def _fetched(working: Working, rows: DataFrame) -> pa.Table:
    touched = {name: F.expr(sql) for name, sql in _touched(working).items()}
    with translated("computing the tuples to write", UNCOMMITTED):
        return rows.withColumns(touched).toArrow()


def _carried_here(working: Working, staged: Staged, rows: pa.Table) -> pa.Table | None:
    """As `_carried`, of rows on the driver; None if what earlier statements staged is not to be had there."""
    if replaced := _replaced(working, staged):
        earlier = working.table.few(replaced, limit=MOST_CHANGED)
        if earlier is None:
            return None
        touched = rows.filter(pc.not_equal(rows[LEVEL], Level.BASE.value))[RID].combine_chunks()
        untouched = earlier.filter(pc.invert(pc.is_in(earlier[RID], touched)))
        for name, value in {LEVEL: Level.OVERLAY.value, ACT: None, TIMES: 0, FAULT: None}.items():
            same = pa.repeat(pa.scalar(value, STAGED_TYPES[name]), len(untouched))
            untouched = untouched.append_column(name, same)
        rows = pa.concat_tables([rows, untouched.select(rows.column_names)])
    return _with_touched(working, rows)


def _with_touched(working: Working, rows: pa.Table) -> pa.Table | None:
    names = [name for name, _ in working.table.layout.columns]
    side = Side.alone("", rows.select(names), working.table.engine.struct(working.table.layout.columns))
    touched = _touched(working)
    if not touched:
        return rows
    found = computed([side], (), touched.values(), pa.schema([(name, pa.bool_()) for name in touched]))
    if found is None:
        return None
    for name in touched:
        rows = rows.append_column(name, found[name])
    return rows


def _write_few(working: Working, found: pa.Table, directory: str) -> Written:
    """As the engine writes and observes many."""
    schema, touched = arrow_schema(working.table.engine.struct(working.table.layout.columns)), _touched(working)
    assert schema is not None
    kept, files = found.filter(pc.not_equal(found[LEVEL], RESTORE)), list[DataFile]()
    for level in Level:
        tuples = kept.filter(pc.equal(kept[LEVEL], level.value)).select(schema.names).cast(schema)
        if tuples.num_rows > SMALL_FILE_ROWS and working.table.cluster_by:
            tuples = tuples.sort_by([(name, "ascending") for name in working.table.cluster_by])
        files += working.table.write(directory, level, tuples)
    reported = {act: pc.sum(found.filter(pc.equal(found[ACT], int(act)))[TIMES]).as_py() for act in Operation}
    observed = {
        "inserted": reported[Operation.INSERT],
        "updated": reported[Operation.UPDATE],
        "deleted": reported[Operation.DELETE],
        "greatest_rid": pc.max(found[RID]).as_py(),
        "fault": pc.min(found[FAULT]).as_py(),
        **{name: pc.any(found[name]).as_py() for name in touched},
    }
    return Written(tuple(files), observed)


def _touched(working: Working) -> dict[str, str]:
    """For each updatable column of a table that views read: did an update change it?"""
    layout = working.table.layout
    if not working.logged or layout.schema.is_bag:
        return {}
    changed = (f"{same_sql(quoted(c), quoted(layout.pre(1, c)), layout, c)}" for c in layout.updatable)
    updated = f"{layout.op(1)} = {int(Operation.UPDATE)}"
    return {f"touched_{i}": f"{updated} AND NOT ({same})" for i, same in enumerate(changed)}


def _check(working: Working, staged: Staged, written: Written) -> None:
    fault = written.observed.get("fault")
    if isinstance(fault, str):
        raise faults.error(working.table.name, fault)
    if repeated := _repeated(working, written.files) if staged.may_repeat else None:
        raise DuplicateKey(f"{working.table.name}: the key {repeated} stands twice among the rows to insert")


# keys that stand twice ------------------------------------------------------------------------------------------------


def _repeated(working: Working, files: tuple[DataFile, ...]) -> str | None:
    """A key that stands twice, as JSON: among new tuples the key tells, among changed ones their identity.

    Void tuples may have the key of another tuple, but no two states of one tuple are written at once.
    """
    for level, by in ((Level.BASE, list(working.table.schema.key)), (Level.OVERLAY, [RID])):
        there = [f for f in files if f.level is level]
        if _may_stand_twice(working, there, by) and (found := _key_standing_twice(working, there, by)):
            return found
    return None


def _may_stand_twice(working: Working, files: list[DataFile], by: list[str]) -> bool:
    """Whether two rows of the files may have the same values in some columns; few rows tell for sure."""
    rows = sum(f.rows for f in files)
    if rows > SMALL_ROWS or not all(_is_plain(working.table.layout.types[name]) for name in by):
        return rows > 1
    return rows > 1 and _distinct_by_arrow(working, files, by) < rows


def _is_plain(kind: str) -> bool:
    """Arrow tells such values apart as Spark does, to whom 0.0 is -0.0, and texts are equal if a collation says so."""
    return kind_of(kind) is not Kind.FLOATING and "collate" not in kind.lower()


def _distinct_by_arrow(working: Working, files: list[DataFile], by: list[str]) -> int:
    tables = working.table.files.read_columns([f.path for f in files], by)
    numbered = pa.concat_tables(table.select(by) for table in tables).rename_columns([f"k{i}" for i in range(len(by))])
    return int(numbered.group_by(numbered.column_names).aggregate([]).num_rows)


def _key_standing_twice(working: Working, files: list[DataFile], by: list[str]) -> str | None:
    """Spelled by Spark, which has values that Python lacks: years beyond 9999, texts that are not UTF-8."""
    key = F.first(F.to_json(F.struct(*map(_col, working.table.schema.key)))).alias("key")
    rows = working.table.tuples(files).groupBy(*map(_col, by)).agg(F.count(F.lit(1)).alias("times"), key)
    twice = rows.where("times > 1").select("key").limit(1).collect()
    return str(twice[0]["key"]) if twice else None


def _col(name: str) -> Column:
    return F.col(quoted(name))


# what the transaction keeps -------------------------------------------------------------------------------------------


def adopt(working: Working, root: Files, paths: Sequence[str], next_rid: int) -> Counts:
    """Files of new tuples that were written elsewhere, for a table that holds none."""
    directory = working.new_directory()
    for number, path in enumerate(paths):
        target = f"{directory}/{LEVEL}={Level.BASE.value}/part-{number:05d}.parquet"
        root.move(path, working.table.files, target)
    made = working.table.engine.written(working.table.files, directory)
    working.staged += made
    working.next_rid = max(working.next_rid, next_rid)
    counts = Counts(inserted=sum(file.rows for file in made))
    working.counts += counts
    return counts


def _take_over(working: Working, staged: Staged, written: Written) -> Counts:
    replaced = _replaced(working, staged)
    working.staged = tuple(f for f in working.staged if f not in replaced) + written.files
    working.replaced += replaced
    greatest = written.observed.get("greatest_rid")
    if isinstance(greatest, int):
        working.next_rid = max(working.next_rid, greatest + 1)
    updatable = working.table.layout.updatable
    touched = frozenset(c for i, c in enumerate(updatable) if written.observed.get(f"touched_{i}"))
    working.touched = touched if Level.OVERLAY in staged.levels else working.touched
    counts = Counts(**{name: int(str(written.observed.get(name) or 0)) for name in ("inserted", "updated", "deleted")})
    working.counts += counts
    return counts
