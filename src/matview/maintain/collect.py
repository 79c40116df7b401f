"""Garbage collection: tuples that no session can need, files that no plan can be reading, tables that are gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from matview.catalog.records import GarbageFile, Lease, TableRecord
from matview.maintain.folding import fold_garbage
from matview.maintain.keeper import LeaseKeeper
from matview.maintain.recovery import repair
from matview.storage.runtime import Runtime


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
        return _collect(runtime, lease)


def _collect(runtime: Runtime, lease: Lease) -> Collected:
    state = runtime.catalog.version()
    horizon = runtime.catalog.sessions.raise_gc_horizon(lease)
    tuples = 0
    for record in runtime.catalog.tables.live(state.current_vn):
        table = runtime.tables.table(record, state.versions)
        tuples += fold_garbage(runtime, lease, table, horizon)
        table.log.checkpoint()
    files = _remove_files(runtime, lease) + _remove_orphans(runtime)
    return Collected(horizon, tuples, files, _remove_tables(runtime, lease, horizon))


def _remove_files(runtime: Runtime, lease: Lease) -> int:
    """Files noted as garbage for longer than the retention, if no snapshot refers to them."""
    noted = runtime.catalog.garbage.older_than(runtime.settings.file_retention)
    removed: list[GarbageFile] = []
    by_table: dict[int, list[GarbageFile]] = {}
    for file in noted:
        by_table.setdefault(file.table_id, []).append(file)
    versions = runtime.catalog.version().versions
    for table_id, files in by_table.items():
        record = runtime.catalog.tables.by_id(table_id)
        if record is not None:
            table = runtime.tables.table(record, versions)
            live = {f.path for f in table.log.load().files}
            table.files.delete(f.path for f in files if f.path not in live)
        removed += files
    runtime.catalog.garbage.forget(lease, removed)
    return len(removed)


def _remove_orphans(runtime: Runtime) -> int:
    """What crashed transactions left: files and directories that nothing refers to, older than the retention."""
    root, before = runtime.tables.root, time.time() - runtime.settings.file_retention
    known = {record.directory: record for record in runtime.catalog.tables.all()}
    removed = 0
    for path, _, changed in root.list("tables", recursive=False):
        record = known.get(path)
        if record is not None:
            removed += _remove_orphan_files(runtime, record, before) if record.dropped_vn is None else 0
        elif changed < before:
            root.delete_dir(path)
            removed += 1
    return removed


def _remove_orphan_files(runtime: Runtime, record: TableRecord, before: float) -> int:
    table = runtime.tables.table(record, runtime.catalog.version().versions)
    kept = {f.path for f in table.log.load().files} | {g.path for g in runtime.catalog.garbage.of(record.id)}
    orphans = [path for path, _, changed in table.files.list("data") if changed < before and path not in kept]
    table.files.delete(orphans)
    return sum(path.endswith(".parquet") for path in orphans)


def _remove_tables(runtime: Runtime, lease: Lease, horizon: int) -> int:
    """Dropped tables that no session can see, once no plan can be reading them: their files are no longer garbage."""
    gone = [r for r in runtime.catalog.tables.collectable(horizon) if not runtime.catalog.garbage.of(r.id)]
    for record in gone:
        runtime.tables.root.delete_dir(record.directory)
        runtime.catalog.tables.forget(lease, record.id)
    return len(gone)
