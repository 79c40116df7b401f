"""Garbage collection: tuples that no session can need, files that no plan can be reading, tables that are gone.

A collector that was suspended, and wakes up when another holds the lease, must do no harm; nor may a predecessor that
was suspended, and has yet to commit, find that its files are gone. So whatever is deleted is deleted under a lease that
was just renewed, and files that nothing refers to only after the table carries our token: from then on nobody before us
can commit to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from matview.catalog.records import GarbageFile, Lease, TableRecord
from matview.catalog.settings import FILE_RETENTION
from matview.maintain.upkeep.folding import fold_garbage
from matview.maintain.upkeep.keeper import LeaseKeeper
from matview.maintain.upkeep.recovery import repair
from matview.settings import DEFAULT_RETENTION
from matview.storage.files import Files
from matview.storage.rounds import HOME, directory
from matview.storage.runtime import Runtime
from matview.storage.table import VersionedTable

HISTORY_KEPT = 10_000
"""How many transactions, and how many sessions that have ended, are remembered."""
REFRESHES_KEPT = 500
"""How many refreshes of each view are."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What one run removed."""

    horizon: int
    tuples: int
    files: int
    tables: int


@contextmanager
def held_lease(runtime: Runtime, wait: float | None = None) -> Iterator[Lease]:
    """The lease, for work that is no maintenance transaction; what a predecessor left is repaired first."""
    settings = runtime.settings
    patience = settings.lease_wait if wait is None else wait
    lease = runtime.catalog.lease.acquire(runtime.holder, settings.lease_ttl, patience)
    keeper = LeaseKeeper(runtime.catalog, lease, settings.lease_ttl)
    try:
        repair(runtime, lease)
        yield lease
    finally:
        keeper.stop()
        runtime.catalog.lease.release(lease)


def collect(runtime: Runtime, *, wait: float | None = None) -> Collected:
    """Takes the lease, so that no maintenance transaction runs meanwhile; readers go on."""
    with held_lease(runtime, wait) as lease:
        return _Collector(runtime, lease).run()


def retention(runtime: Runtime) -> float:
    """The warehouse's, or this process's own if that is longer."""
    kept = runtime.catalog.settings.number(FILE_RETENTION, DEFAULT_RETENTION)
    return max(kept, runtime.settings.file_retention or 0.0)


class _Collector:
    """One run, under one lease."""

    def __init__(self, runtime: Runtime, lease: Lease) -> None:
        self._runtime = runtime
        self._catalog = runtime.catalog
        self._lease = lease
        self._retention = retention(runtime)
        self._state = runtime.catalog.version()

    def run(self) -> Collected:
        horizon = self._catalog.sessions.raise_gc_horizon(self._lease)
        tuples = 0
        for record in self._catalog.tables.live(self._state.current_vn):
            table = self._table(record)
            tuples += fold_garbage(self._runtime, self._lease, table, horizon)
            table.log.checkpoint()
        files = self._remove_noted() + self._remove_orphans() + self._remove_rounds()
        tables = self._remove_tables(horizon)
        self._catalog.sessions.prune(self._lease, HISTORY_KEPT)
        self._catalog.transactions.prune(self._lease, HISTORY_KEPT)
        self._catalog.views.prune(self._lease, REFRESHES_KEPT)
        return Collected(horizon, tuples, files, tables)

    def _remove_noted(self) -> int:
        """Files noted as garbage for longer than the retention, if nothing refers to them.

        One that its table still has was noted by a commit that never came: that note is forgotten. So is one of a
        dropped table, which goes as a whole and may never have been written. One that a view still needs stays noted.
        """
        by_table: dict[int, list[GarbageFile]] = {}
        for file in self._catalog.garbage.older_than(self._retention):
            by_table.setdefault(file.table_id, []).append(file)
        removed = 0
        for table_id, noted in by_table.items():
            record = self._catalog.tables.by_id(table_id)
            if record is not None:
                logged = self._logged(table_id)
                noted = [f for f in noted if f.path not in logged]
            if record is not None and record.dropped_vn is None:
                table = self._table(record)
                live = {f.path for f in table.log.load().files}
                removed += self._delete(table.files, [f.path for f in noted if f.path not in live])
            self._catalog.garbage.forget(self._lease, noted)
        return removed

    def _logged(self, table_id: int) -> set[str]:
        """The files that some view has yet to take the changes from."""
        return {file.path for entry in self._catalog.views.log(table_id, after=0) for file in entry.files}

    def _remove_orphans(self) -> int:
        """What crashed transactions left: files and directories that nothing refers to, older than the retention."""
        root, before = self._runtime.tables.root, time.time() - self._retention
        known = {record.directory: record for record in self._catalog.tables.all()}
        removed = 0
        for path, _, changed in root.list("tables", recursive=False):
            record = known.get(path)
            if record is not None:
                removed += self._remove_orphan_files(record, before) if record.dropped_vn is None else 0
            elif changed < before:
                removed += _data_files(found for found, _, _ in root.list(path))
                self._delete_dir(root, path)
        return removed

    def _remove_rounds(self) -> int:
        """What rounds and loads left that were cut short: nothing of it was written within the retention."""
        root, before = self._runtime.tables.root, time.time() - self._retention
        needed = {directory(one.number) for one in self._catalog.rounds.pending()}
        removed = 0
        for path, _, changed in root.list(HOME, recursive=False):
            inside = root.list(path)
            if path not in needed and max([changed, *(at for _, _, at in inside)]) < before:
                removed += _data_files(found for found, _, _ in inside)
                self._delete_dir(root, path)
        return removed

    def _remove_orphan_files(self, record: TableRecord, before: float) -> int:
        """Listed, fenced, looked up, then deleted: what a predecessor has not committed by now it no longer can."""
        table = self._table(record)
        old = {path for path, _, changed in table.files.list("data") if changed < before}
        orphans = old - self._known(table)
        if _data_files(orphans):
            table.log.commit(table.log.load(), self._lease.token, (), ())
            orphans -= self._known(table)
        self._delete(table.files, sorted(orphans))
        self._remove_empty_directories(table.files, before)
        return _data_files(orphans)

    def _known(self, table: VersionedTable) -> set[str]:
        """The files that the table, its garbage or its log refer to."""
        live = {f.path for f in table.log.load().files}
        return live | {g.path for g in self._catalog.garbage.of(table.id)} | self._logged(table.id)

    def _remove_empty_directories(self, files: Files, before: float) -> None:
        for path, _, changed in files.list("data", recursive=False):
            if changed < before and not files.list(path):
                self._delete_dir(files, path)

    def _remove_tables(self, horizon: int) -> int:
        """Dropped tables that no session can see, once no plan can be reading them: their files are garbage no more."""
        gone = [r for r in self._catalog.tables.collectable(horizon) if not self._catalog.garbage.of(r.id)]
        for record in gone:
            self._delete_dir(self._runtime.tables.root, record.directory)
            self._catalog.tables.forget(self._lease, record.id)
        return len(gone)

    def _table(self, record: TableRecord) -> VersionedTable:
        return self._runtime.tables.table(record, self._state.versions)

    def _delete(self, files: Files, paths: list[str]) -> int:
        """How many of them were there."""
        if not paths:
            return 0
        self._still_ours()
        return files.delete(paths)

    def _delete_dir(self, files: Files, path: str) -> None:
        self._still_ours()
        files.delete_dir(path)

    def _still_ours(self) -> None:
        """LeaseLost, and nothing is deleted, once another has taken over."""
        self._catalog.lease.renew(self._lease, self._runtime.settings.lease_ttl)


def _data_files(paths: Iterable[str]) -> int:
    """Spark leaves checksums and marks of success beside them, which nobody counts."""
    return sum(path.endswith(".parquet") for path in paths)
