"""Undoing a maintenance transaction from the tuples themselves (Q17).

A transaction only adds files, and every tuple in them has its version number as `__vn1`. So a table without its files
is the table before it: the older states, hidden until then, come back whole, with every version they told before.
Nothing else is needed to find them than the statistics of `__vn1`: what is later than currentVN was never committed.
"""

from __future__ import annotations

from matview.catalog.records import GarbageFile, Lease, TransactionRecord
from matview.storage.runtime import Runtime
from matview.storage.snapshot import DataFile, Snapshot
from matview.storage.table import VersionedTable


def repair(runtime: Runtime, lease: Lease) -> None:
    """Brings every unfinished transaction of a predecessor to its end: undone, or its tail repeated."""
    for left in runtime.catalog.transactions.unfinished():
        if left.state == "committed":
            runtime.catalog.transactions.finish(lease, token=left.token)
        else:
            _undo(runtime, lease, left)


def _undo(runtime: Runtime, lease: Lease, left: TransactionRecord) -> None:
    """Files are noted as garbage before they are taken out: a crash in between leaves nothing unknown."""
    state = runtime.catalog.version()
    records = [runtime.catalog.tables.by_id(table_id) for table_id in left.journal]
    touched = [runtime.tables.table(record, state.versions) for record in records if record is not None]
    garbage = [GarbageFile(t.id, f.path) for t in touched for f in _late(t, t.log.load(), state.current_vn)]
    runtime.catalog.transactions.housekeeping(lease, garbage)
    for table in touched:
        remove_uncommitted(table, lease.token, state.current_vn)
    runtime.catalog.transactions.abort(lease, token=left.token, error="undone by recovery")


def remove_uncommitted(table: VersionedTable, token: int, current_vn: int) -> None:
    """Takes the files out whose tuples are later than currentVN.

    It commits even if there are none: from then on the table carries our token, and a late commit of the predecessor's
    is refused.
    """
    snapshot = table.log.load()
    table.log.commit(snapshot, token, (), _late(table, snapshot, current_vn))


def _late(table: VersionedTable, snapshot: Snapshot, current_vn: int) -> list[DataFile]:
    return [f for f in snapshot.files if f.greatest(table.layout.vn(1)) > current_vn]
