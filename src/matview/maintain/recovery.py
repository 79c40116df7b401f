"""Undoing a maintenance transaction from the tuples themselves (Q17).

A transaction only adds files, and every tuple in them has its version number as `__vn1`. So a table without its files
is the table before it: the older states, hidden until then, come back whole, with every version they told before.
Nothing else is needed to find them than the statistics of `__vn1`: what is later than currentVN was never committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from matview.catalog.records import GarbageFile, Lease, TransactionRecord
from matview.storage.runtime import Runtime
from matview.storage.table import VersionedTable


def repair(runtime: Runtime, lease: Lease) -> None:
    """Brings every unfinished transaction of a predecessor to its end: undone, or its tail repeated."""
    for left in runtime.catalog.transactions.unfinished():
        if left.state == "committed":
            runtime.catalog.transactions.finish(lease, token=left.token)
        else:
            _undo(runtime, lease, left)


def _undo(runtime: Runtime, lease: Lease, left: TransactionRecord) -> None:
    state = runtime.catalog.version()
    garbage: list[GarbageFile] = []
    for table_id in left.journal:
        record = runtime.catalog.tables.by_id(table_id)
        if record is not None:
            table = runtime.tables.table(record, state.versions)
            garbage += remove_uncommitted(table, lease.token, state.current_vn)
    runtime.catalog.transactions.abort(lease, token=left.token, error="undone by recovery", garbage=garbage)


def remove_uncommitted(table: VersionedTable, token: int, current_vn: int) -> Sequence[GarbageFile]:
    """Takes the files out whose tuples are later than currentVN.

    It commits even if there are none: from then on the table carries our token, and a late commit of the predecessor's
    is refused.
    """
    snapshot = table.log.load()
    late = [f for f in snapshot.files if int(str(f.maximum[table.layout.vn(1)])) > current_vn]
    table.log.commit(snapshot, token, (), late)
    return [GarbageFile(table.id, f.path) for f in late]
