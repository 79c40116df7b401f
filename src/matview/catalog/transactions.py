"""Maintenance transactions: their history, and the journal that tells a successor what to repair.

    active --journal--> committing --commit--> committed --finish--> (tail done)
       \\________________commit______________/
       \\________________ abort, from either ---> aborted

An aborted one has no tail to do.
maintenanceActive is true just while one is active or committing; there is at most one such, at currentVN + 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, delete, insert, not_, select, update

from matview.catalog import codec, schema
from matview.catalog.garbage import add_garbage
from matview.catalog.groups import change_groups
from matview.catalog.lease import fenced
from matview.catalog.records import (
    CatalogChanges,
    Edge,
    GarbageFile,
    GroupChanges,
    Lease,
    RefreshRecord,
    TransactionRecord,
    TransactionState,
)
from matview.catalog.rounds import change_sources
from matview.catalog.source_records import SourceChanges
from matview.catalog.store import Reading, Store, Writing
from matview.catalog.tables import advance_rids, create_table, drop_table
from matview.catalog.version import set_version, version_state
from matview.catalog.views import change_views
from matview.errors import MaintenanceBusy, TransactionOver

OPEN = ("active", "committing")


class Transactions:
    """Every write is fenced by a lease: one acquisition, one transaction, known by the lease's token."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, lease: Lease) -> int:
        """maintenanceVN = currentVN + 1, and maintenanceActive.

        MaintenanceBusy while a predecessor's transaction is neither committed nor aborted: it must be repaired first.
        """
        return fenced(self._store, lease, lambda writing: _begin(writing, lease))

    def journal(self, lease: Lease, tables: Sequence[int]) -> None:
        """Before any table is committed: from now on a successor has to look at these. A later journal replaces it."""
        fenced(self._store, lease, lambda writing: _journal(writing, lease, tables))

    def commit(self, lease: Lease, changes: CatalogChanges) -> None:
        """currentVN = maintenanceVN, not maintenanceActive, and all of `changes`, in one step."""
        fenced(self._store, lease, lambda writing: _commit(writing, lease, changes))

    def abort(
        self,
        lease: Lease,
        *,
        token: int | None = None,
        error: str | None = None,
        garbage: Sequence[GarbageFile] = (),
    ) -> None:
        """The transaction `token` (its own; a predecessor's for who repairs it) is undone: not maintenanceActive."""
        undone = lease.token if token is None else token
        fenced(self._store, lease, lambda writing: _abort(writing, undone, error, garbage))

    def finish(self, lease: Lease, *, token: int | None = None) -> None:
        """The tail of the committed transaction `token` (its own, or a predecessor's) is done; twice is fine."""
        done = lease.token if token is None else token
        fenced(self._store, lease, lambda writing: _finish(writing, done))

    def housekeeping(self, lease: Lease, garbage: Sequence[GarbageFile]) -> None:
        """Record what folding left behind, outside any change of version."""
        fenced(self._store, lease, lambda writing: add_garbage(writing, garbage))

    def progress(
        self,
        lease: Lease,
        edges: Sequence[Edge],
        groups: GroupChanges,
        refreshes: Sequence[RefreshRecord] = (),
        sources: SourceChanges | None = None,
    ) -> None:
        """Views that had nothing to take over show the newest version: edges and effective states move, it does not.

        So with rounds in which nothing was left to install.
        """
        told = sources or SourceChanges()
        changes = CatalogChanges(edges=tuple(edges), groups=groups, refreshes=tuple(refreshes), sources=told)
        fenced(self._store, lease, lambda writing: _progress(writing, lease, changes))

    def prune(self, lease: Lease, keep: int) -> int:
        """Forget what is finished, but for the newest `keep` and the commit that made currentVN; how many."""
        return fenced(self._store, lease, lambda writing: _prune(writing, keep))

    def get(self, token: int) -> TransactionRecord | None:
        """One transaction."""
        return self._store.read(lambda reading: _get(reading, token))

    def settled(self, lease: Lease) -> TransactionState | None:
        """The state of the lease's own transaction, once no commit of it can still be under way."""
        record = fenced(self._store, lease, lambda writing: _get(writing, lease.token))
        return None if record is None else record.state

    def unfinished(self) -> list[TransactionRecord]:
        """What a successor repairs, oldest first: open ones are undone, of committed ones the tail is repeated."""
        return self._store.read(_unfinished)

    def history(self, limit: int | None = 100) -> list[TransactionRecord]:
        """The newest first; None: all."""
        query = select(schema.transaction).order_by(schema.transaction.c.token.desc()).limit(limit)
        return self._store.read(lambda reading: [codec.transaction_record(row) for row in reading.rows(query)])


def _begin(writing: Writing, lease: Lease) -> int:
    _refuse_if_begun(writing, lease)
    vn = version_state(writing).current_vn + 1
    row = {"token": lease.token, "vn": vn, "state": "active", "holder": lease.holder, "began_at": writing.now()}
    writing.change(insert(schema.transaction).values(**row, journal="[]", summary="{}", tail_done=False))
    set_version(writing, maintenance_active=True)
    return vn


def _refuse_if_begun(reading: Reading, lease: Lease) -> None:
    if _get(reading, lease.token) is not None:
        raise TransactionOver(f"lease {lease.token} has had its transaction", help="acquire a new lease")
    for left in _unfinished(reading):
        if left.state in OPEN:
            what = f"the maintenance transaction {left.token} of {left.holder} was left {left.state}"
            raise MaintenanceBusy(what, help="it must be repaired, then aborted, before another can begin")


def _journal(writing: Writing, lease: Lease, tables: Sequence[int]) -> None:
    _open_transaction(writing, lease.token)
    _set(writing, lease.token, state="committing", journal=codec.ids_to_text(tables))


def _commit(writing: Writing, lease: Lease, changes: CatalogChanges) -> None:
    record = _open_transaction(writing, lease.token)
    vn = record.vn
    _change_tables(writing, changes, vn)
    advance_rids(writing, changes.next_rid)
    add_garbage(writing, changes.garbage)
    change_views(writing, changes)
    change_groups(writing, changes, vn, record.began_at)
    change_sources(writing, changes.sources, vn)
    moved = {"changed_vn": vn} if changes.changed else {}
    moved |= {"defined_vn": vn} if changes.defined else {}
    set_version(writing, current_vn=vn, maintenance_active=False, **moved)
    summary = codec.mapping_to_text(changes.summary)
    _set(writing, lease.token, state="committed", ended_at=writing.now(), summary=summary)


def _change_tables(writing: Writing, changes: CatalogChanges, vn: int) -> None:
    """Drop what was there first: the same transaction may give the name anew."""
    new_ids = {new.id for new in changes.created}
    for table_id in changes.dropped:
        if table_id not in new_ids:
            drop_table(writing, table_id, vn)
    for new in changes.created:
        create_table(writing, new, vn)
        if new.id in changes.dropped:
            drop_table(writing, new.id, vn)


def _abort(writing: Writing, token: int, error: str | None, garbage: Sequence[GarbageFile]) -> None:
    _open_transaction(writing, token)
    add_garbage(writing, garbage)
    set_version(writing, maintenance_active=False)
    _set(writing, token, state="aborted", ended_at=writing.now(), error=codec.clean(error), tail_done=True)


def _finish(writing: Writing, token: int) -> None:
    record = _get(writing, token)
    if record is None or record.state != "committed":
        raise TransactionOver(f"transaction {token} is {record.state if record else 'unknown'}, not committed")
    _set(writing, token, tail_done=True)


def _progress(writing: Writing, lease: Lease, changes: CatalogChanges) -> None:
    began_at = _open_transaction(writing, lease.token).began_at
    current = version_state(writing).current_vn
    change_views(writing, changes)
    change_groups(writing, changes, current, began_at)
    change_sources(writing, changes.sources, current)


def _prune(writing: Writing, keep: int) -> int:
    columns = schema.transaction.c
    kept = select(columns.token).order_by(columns.token.desc()).limit(keep)
    older = and_(columns.tail_done, columns.vn < version_state(writing).current_vn, columns.token.not_in(kept))
    return writing.change(delete(schema.transaction).where(older))


def _open_transaction(reading: Reading, token: int) -> TransactionRecord:
    record = _get(reading, token)
    if record is None:
        raise TransactionOver(f"no maintenance transaction was begun under lease {token}")
    if record.state not in OPEN:
        raise TransactionOver(f"the maintenance transaction {token} is {record.state}")
    return record


def _get(reading: Reading, token: int) -> TransactionRecord | None:
    row = reading.first(select(schema.transaction).where(schema.transaction.c.token == token))
    return None if row is None else codec.transaction_record(row)


def _unfinished(reading: Reading) -> list[TransactionRecord]:
    columns = schema.transaction.c
    query = select(schema.transaction).where(not_(columns.tail_done)).order_by(columns.token)
    return [codec.transaction_record(row) for row in reading.rows(query)]


def _set(writing: Writing, token: int, **values: object) -> None:
    writing.change(update(schema.transaction).where(schema.transaction.c.token == token).values(**values))
