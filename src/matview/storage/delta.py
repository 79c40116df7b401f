"""One Delta table: load the newest snapshot, commit files against the snapshot that was loaded.

A commit is a compare-and-swap: it succeeds only if nobody has committed since its snapshot, and only under a token that
is not older than the table's. So a revived holder of an old lease cannot add to a table that its successor has touched.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Field
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from matview.errors import LeaseLost, StorageFailure
from matview.storage.faults import storage_failure
from matview.storage.files import Files
from matview.storage.snapshot import APPLICATION, DataFile, Snapshot, data_file_of
from matview.storage.stats import delta_stats
from matview.versions.layout import LEVEL

UNCOMMITTED = "nothing was committed; free space or mend the storage, then run it again"
_CONFIGURATION: Mapping[str, str | None] = {
    "delta.dataSkippingNumIndexedCols": "-1",
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 1 days",
}
_TRUSTED_SECONDS = 3600.0
"""For so long no entry of the log is removed that was not there before: log retention is much longer."""


class DeltaFiles:
    """The Delta log of one table directory; `fields` gives the stored columns, which only writing asks for."""

    def __init__(self, files: Files, fields: Callable[[], Sequence[Mapping[str, object]]]) -> None:
        self.files = files
        self._fields = fields
        self._lock = threading.Lock()
        self._table: DeltaTable | None = None
        self._snapshot: Snapshot | None = None
        self._seen_at = 0.0
        """When that was the newest one."""
        self._committing = threading.Lock()
        self._committed: DeltaTable | None = None
        """The table as it was committed to last, for committing alone: readers must not wait for that."""

    @property
    def _schema(self) -> Schema:
        return _delta_schema(self._fields())

    def create(self, token: int) -> None:
        """Makes the empty table."""
        self.files.make()
        try:
            create_table_with_add_actions(
                self.files.uri(),
                self._schema,
                [],
                partition_by=[LEVEL],
                configuration=_CONFIGURATION,
                commit_properties=_properties(token),
            )
        except (DeltaError, OSError) as error:
            raise storage_failure(error, "making a Delta table", UNCOMMITTED) from error

    def load(self) -> Snapshot:
        """The newest snapshot."""
        with self._lock:
            now = time.time()  # the other clock stands still while the machine sleeps
            try:
                if self._snapshot is None or not self._is_newest(self._snapshot, now):
                    self._keep(self._refreshed(), now)
            except (DeltaError, TableNotFoundError, OSError) as error:
                self._table = None
                raise storage_failure(error, f"reading the Delta log of {self.files.uri()}") from error
            assert self._snapshot is not None
            return self._snapshot

    def _is_newest(self, known: Snapshot, now: float) -> bool:
        """To look for the next entry of the log takes a hundredth of what it takes to read the log; but old entries
        are removed, so that one that is not there may have been."""
        is_recent = 0 <= now - self._seen_at <= _TRUSTED_SECONDS
        if not is_recent or self.files.exists(_entry(known.delta_version + 1)):
            return False
        self._seen_at = now
        return True

    def _keep(self, newest: Snapshot, now: float) -> None:
        """`now` was before anybody looked for it."""
        if self._snapshot is None or newest.delta_version > self._snapshot.delta_version:
            self._snapshot = newest
        self._seen_at = now

    def _refreshed(self) -> Snapshot:
        if self._table is None:
            self._table = DeltaTable(self.files.uri())
        else:
            self._table.update_incremental()
        known = self._snapshot
        return known if known is not None and known.delta_version == self._table.version() else _read(self._table)

    def commit(self, read: Snapshot, token: int, add: Sequence[DataFile], remove: Sequence[DataFile]) -> None:
        """Adds and removes files, all or nothing, if `read` is still the newest snapshot and `token` not stale."""
        began = time.time()
        now = int(began * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(f.path, f.size, {LEVEL: f.level.value}, now, True, delta_stats(f)) for f in add
        ]
        actions += [RemoveAction(f.path, True, now, f.size, {LEVEL: f.level.value}) for f in remove]
        with self._committing:
            if read.token > token:
                raise LeaseLost(f"transaction {token} was overtaken by {read.token}")
            known, self._committed = self._committed, None
            try:
                table = self._as_of(read, known)
                self._write(table, actions, token)
            except CommitFailedError as error:
                raise self._failed_commit(error, read, token) from error
            except (DeltaError, OSError) as error:
                raise storage_failure(error, "committing to the Delta log", UNCOMMITTED) from error
            self._committed = table
            with self._lock:
                self._keep(read.after(token, add, remove), began)

    def _as_of(self, read: Snapshot, known: DeltaTable | None) -> DeltaTable:
        """To bring the one of the last commit up to date takes a quarter of the time of opening another."""
        if known is not None:
            with suppress(DeltaError, OSError):  # another is opened, then, and says what is wrong
                known.update_incremental()
                if known.version() == read.delta_version:
                    return known
        return DeltaTable(self.files.uri(), version=read.delta_version)

    def _write(self, table: DeltaTable, actions: Sequence[AddAction | RemoveAction], token: int) -> None:
        table.create_write_transaction(
            [*actions],
            "append",
            self._schema,
            [LEVEL],
            commit_properties=_properties(token),
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )

    def _failed_commit(self, error: Exception, read: Snapshot, token: int) -> LeaseLost | StorageFailure:
        newest = DeltaTable(self.files.uri()).version()
        if newest != read.delta_version:
            return LeaseLost(f"transaction {token}: another has committed to the table in between")
        return storage_failure(error, "committing to the Delta log", UNCOMMITTED)

    def add_columns(self, fields: Sequence[Mapping[str, object]], token: int) -> None:
        """Extends the schema; files written before read as null there."""
        try:
            table = DeltaTable(self.files.uri())
            known = {f.name for f in table.schema().fields}
            missing = [Field.from_json(json.dumps(f)) for f in fields if f["name"] not in known]
            if missing:
                table.alter.add_columns(missing, commit_properties=_properties(token))
        except (DeltaError, OSError) as error:
            raise storage_failure(error, "widening a Delta table", UNCOMMITTED) from error

    def checkpoint(self) -> None:
        """Shortens the log: a checkpoint, and the removal of log files that no reader needs any more."""
        try:
            table = DeltaTable(self.files.uri())
            table.create_checkpoint()
            table.cleanup_metadata()
        except (DeltaError, OSError) as error:
            raise storage_failure(error, f"shortening the Delta log of {self.files.uri()}") from error


def _entry(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _properties(token: int) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(APPLICATION, token)], max_commit_retries=0)


def _delta_schema(fields: Sequence[Mapping[str, object]]) -> Schema:
    level = {"name": LEVEL, "type": "string", "nullable": True, "metadata": {}}
    return Schema.from_json(json.dumps({"type": "struct", "fields": [*fields, level]}))


def _read(table: DeltaTable) -> Snapshot:
    actions = pa.RecordBatchReader.from_stream(
        table.get_add_actions(flatten=True)
    )  # pa.table(...) imports pandas: 0.4 s
    rows = actions.read_all().to_pylist()
    files = tuple(data_file_of(row) for row in rows)
    return Snapshot(table.version(), table.transaction_version(APPLICATION) or 0, files)
