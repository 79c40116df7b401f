"""When the tail of a transaction, or garbage collection, folds a table: the decision, the rewrite, one Delta commit."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from matview.catalog.records import GarbageFile, Lease
from matview.storage.fold import Bounds, Folder, Rewrite, choose, due
from matview.storage.runtime import Runtime
from matview.storage.snapshot import DataFile, Snapshot
from matview.storage.table import VersionedTable


def fold_if_due(runtime: Runtime, lease: Lease, table: VersionedTable, step: Callable[[str], None]) -> bool:
    """Folds as much as the bounds call for; says whether it did anything."""
    snapshot = table.log.load()
    bounds = _bounds(runtime)
    call = due(snapshot, bounds)
    if not call:
        return False
    folder = _folder(runtime, lease, table, snapshot)
    directory = _directory(lease, snapshot)
    files: Sequence[DataFile] = call.compact
    if call.fold:
        overlay_rows = sum(f.rows for f in snapshot.overlay)
        chosen = choose(folder.hidden(), overlay_rows, bounds.tuples(sum(f.rows for f in snapshot.base)))
        files = tuple({f.path: f for f in (*chosen, *files)}.values())
    rewrite = folder.fold(files, directory) if files else folder.merge(directory)
    _commit(runtime, lease, table, snapshot, rewrite)
    step(f"folded {table.name}")
    return True


def fold_garbage(runtime: Runtime, lease: Lease, table: VersionedTable, horizon: int) -> int:
    """Rewrites the base files that hold tuples nobody needs any more (Q16); how many tuples went."""
    snapshot = table.log.load()
    if snapshot.greatest(table.layout.op(1)) < 3:
        return 0
    folder = Folder(table, snapshot, horizon, lease.token)
    counted = folder.garbage()
    files = [file for file, count in counted if count]
    if files:
        rewrite = folder.fold(files, _directory(lease, snapshot))
        _commit(runtime, lease, table, snapshot, rewrite)
    return sum(count for _, count in counted)


def fold_all(runtime: Runtime, lease: Lease, table: VersionedTable) -> bool:
    """Everything into base files; says whether there was an overlay or more than one small file."""
    snapshot = table.log.load()
    if not snapshot.overlay and len(snapshot.base) <= 1:
        return False
    folder = _folder(runtime, lease, table, snapshot)
    rewrite = folder.fold(snapshot.base, _directory(lease, snapshot))
    _commit(runtime, lease, table, snapshot, rewrite)
    return True


def _bounds(runtime: Runtime) -> Bounds:
    settings = runtime.settings
    return Bounds(settings.fold_files, settings.fold_share, settings.fold_least)


def _folder(runtime: Runtime, lease: Lease, table: VersionedTable, snapshot: Snapshot) -> Folder:
    return Folder(table, snapshot, runtime.catalog.sessions.raise_gc_horizon(lease), lease.token)


def _directory(lease: Lease, snapshot: Snapshot) -> str:
    """One of its own for each attempt: files are never written over."""
    return f"data/{lease.token:010d}-fold-{snapshot.delta_version}-{secrets.token_hex(3)}"


def _commit(runtime: Runtime, lease: Lease, table: VersionedTable, snapshot: Snapshot, rewrite: Rewrite) -> None:
    """What is taken out is noted as garbage first; before a file is removed, it is asked whether it is still in use."""
    garbage = [GarbageFile(table.id, f.path) for f in rewrite.remove]
    runtime.catalog.transactions.housekeeping(lease, garbage)
    table.log.commit(snapshot, lease.token, rewrite.add, rewrite.remove)
