"""Folding: bringing changed tuples back into base files, in no way that a reader could notice.

*Merge* makes one overlay file of many. *Fold* rewrites base files together with the overlay tuples that belong to them,
and leaves out deleted tuples that no open session can need and void ones. What is rewritten is decided by `choose`: the
fewest base tuples for which the overlay falls to half its bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from matview.storage.engine import small
from matview.storage.few import are_few
from matview.storage.lookup import newest_of, whole_of
from matview.storage.snapshot import DataFile, Level, Snapshot
from matview.storage.table import VersionedTable
from matview.versions.layout import RID
from matview.versions.text import quoted
from matview.versions.tuples import Operation

SMALL_FILE_ROWS = 100_000
LEAST_COMPACT = 1_000  # tuples; files of fewer are of one size
ROWS_PER_FILE = 2_000_000
ROWS_PER_CLUSTER = 250_000  # in a sorted table, where smaller files let statistics prune more


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much overlay a table may gather: files, and tuples as a share of the base but at least `least`."""

    files: int
    share: float
    least: int

    def tuples(self, base_rows: int) -> int:
        return max(self.least, int(self.share * base_rows))


@dataclass(frozen=True, slots=True)
class Due:
    """What a snapshot calls for."""

    merge: bool
    fold: bool
    compact: tuple[DataFile, ...] = ()

    def __bool__(self) -> bool:
        return self.merge or self.fold or bool(self.compact)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The outcome: files to take out and files to put in, by one Delta commit."""

    remove: tuple[DataFile, ...]
    add: tuple[DataFile, ...]


def due(snapshot: Snapshot, bounds: Bounds) -> Due:
    """By counting files and tuples only: nothing is read."""
    base_rows = sum(f.rows for f in snapshot.base)
    overlay_rows = sum(f.rows for f in snapshot.overlay)
    alike = _of_a_size(f for f in snapshot.base if f.rows < SMALL_FILE_ROWS)
    return Due(
        merge=len(snapshot.overlay) > bounds.files,
        fold=overlay_rows > bounds.tuples(base_rows),
        compact=alike if len(alike) > bounds.files else (),
    )


def _of_a_size(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """The most of which each is not larger than all of them before it: a tuple is written anew only when as many others
    come with it, and so not often."""
    most: list[DataFile] = []
    run: list[DataFile] = []
    for file in sorted(files, key=lambda file: file.rows):
        if file.rows > max(LEAST_COMPACT, sum(f.rows for f in run)):
            run = []
        run.append(file)
        most = max(most, run, key=len).copy()
    return tuple(most)


def choose(hidden: Sequence[tuple[DataFile, int]], overlay_rows: int, bound: int) -> tuple[DataFile, ...]:
    """The densest files first, until what stays in the overlay is at most half the bound."""
    ranked = sorted(hidden, key=lambda pair: pair[1] / max(1, pair[0].rows), reverse=True)
    chosen: list[DataFile] = []
    left = overlay_rows
    for file, count in ranked:
        if left <= bound // 2 or count == 0:
            break
        chosen.append(file)
        left -= count
    return tuple(chosen)


class Folder:
    """Rewrites files of one table; `horizon` is the least version that any open session needs."""

    def __init__(self, table: VersionedTable, snapshot: Snapshot, horizon: int, token: int) -> None:
        self._table = table
        self._snapshot = snapshot
        self._horizon = horizon
        self._token = token

    def hidden(self) -> list[tuple[DataFile, int]]:
        """For each base file, how many of its tuples the overlay hides."""
        overlay = self._snapshot.overlay
        return self._count_by_file(self._table.hiders(overlay).select(RID).distinct(), sum(f.rows for f in overlay))

    def garbage(self) -> list[tuple[DataFile, int]]:
        """For each base file, how many of its tuples are void, or deleted and needed by no session."""
        files = self._snapshot.files
        rids = self._newest(files).where(~self._needed()).select(RID)
        return self._count_by_file(rids, sum(f.rows for f in files))

    def _count_by_file(self, rids: DataFrame, most: int) -> list[tuple[DataFile, int]]:
        """For each base file, how many of its tuples are among the given ones, which are at most so many."""
        table, by_name = self._table, {f.path.rsplit("/", 1)[-1]: f for f in self._snapshot.base}
        if not by_name:
            return []
        paths = [table.files.spark_uri(f.path) for f in self._snapshot.base]
        base = table.engine.spark.read.schema(table.engine.struct(((RID, "bigint"),))).parquet(*paths)
        named = base.select(RID, F.col("_metadata.file_name").alias("__file"))
        rows = named.join(small(rids, most), RID, "left_semi").groupBy("__file").count().collect()
        return [(by_name[row["__file"]], row["count"]) for row in rows]

    def merge(self, directory: str) -> Rewrite:
        """One overlay file of all; of few tuples on the driver."""
        overlay = self._snapshot.overlay
        few = newest_of(self._table, overlay)
        if few is None:
            newest = self._newest(overlay).hint("rebalance", 1)
            return Rewrite(overlay, self._write(newest, directory, Level.OVERLAY))
        return Rewrite(overlay, self._table.write(directory, Level.OVERLAY, few))

    def fold(self, files: Sequence[DataFile], directory: str) -> Rewrite:
        """The given base files anew, with what the overlay has for them; the rest of the overlay as one file."""
        here = self._folded_here(files, directory)
        if here is not None:
            return here
        whole = len(files) == len(self._snapshot.base)
        base = self._table.tuples(files)
        overlay = self._newest(self._snapshot.overlay) if self._snapshot.overlay else None
        rows = self._table.latest(files, self._snapshot.overlay)
        rest: tuple[DataFile, ...] = ()
        if overlay is not None:
            rids = base.select(RID)
            rows = rows.unionByName(overlay if whole else overlay.join(rids, RID, "left_semi"))
            if not whole:
                left = overlay.join(rids, RID, "left_anti").hint("rebalance", 1)
                rest = self._write(left, f"{directory}-rest", Level.OVERLAY)
        folded = self._laid_out(rows.where(self._needed()), sum(f.rows for f in files))
        added = self._write(folded, directory, Level.BASE)
        return Rewrite((*files, *self._snapshot.overlay), (*added, *rest))

    def _folded_here(self, files: Sequence[DataFile], directory: str) -> Rewrite | None:
        """Of few tuples, on the driver; None if they are for Spark."""
        table, overlay = self._table, self._snapshot.overlay
        if table.cluster_by or not are_few(sum(f.rows for f in (*files, *overlay))):
            return None
        base, later = whole_of(table, files), newest_of(table, overlay)
        if base is None or later is None:
            return None
        whole = len(files) == len(self._snapshot.base)
        theirs = pc.is_in(later[RID], base[RID].combine_chunks())
        moved = later if whole else later.filter(theirs)
        rest = later.slice(0, 0) if whole else later.filter(pc.invert(theirs))
        shown = base.filter(pc.invert(pc.is_in(base[RID], later[RID].combine_chunks())))
        folded = pa.concat_tables([shown, moved])
        vn, op = folded[table.layout.vn(1)], folded[table.layout.op(1)]
        collectable = pc.and_(pc.equal(op, int(Operation.DELETE)), pc.less_equal(vn, self._horizon))
        folded = folded.filter(pc.invert(pc.or_(collectable, pc.equal(op, int(Operation.VOID)))))
        added = table.write(directory, Level.BASE, folded)
        return Rewrite((*files, *overlay), (*added, *table.write(f"{directory}-rest", Level.OVERLAY, rest)))

    def _newest(self, files: Sequence[DataFile]) -> DataFrame:
        """As `latest`, but with void tuples, which have to go on hiding."""
        return self._table.newest(files, self._snapshot.overlay)

    def _needed(self) -> Column:
        vn, op = F.col(self._table.layout.vn(1)), F.col(self._table.layout.op(1))
        collectable = (op == int(Operation.DELETE)) & (vn <= self._horizon)
        return ~(collectable | (op == int(Operation.VOID)))

    def _laid_out(self, rows: DataFrame, count: int) -> DataFrame:
        if self._table.cluster_by:
            return clustered(rows, count, *(F.col(quoted(name)) for name in self._table.cluster_by))
        return rows.coalesce(_files(count, ROWS_PER_FILE)) if count >= SMALL_FILE_ROWS else rows.hint("rebalance", 1)

    def _write(self, rows: DataFrame, directory: str, level: Level) -> tuple[DataFile, ...]:
        written = self._table.engine.write(rows, self._table.files, directory, (level,), {"n": F.count(F.lit(1))})
        return written.files


def clustered(rows: DataFrame, count: int, *columns: Column) -> DataFrame:
    """Many tuples in files of a good size, sorted, so that statistics prune."""
    return rows.repartitionByRange(_files(count, ROWS_PER_CLUSTER), *columns).sortWithinPartitions(*columns)


def _files(count: int, rows_per_file: int) -> int:
    return max(1, -(-count // rows_per_file))
