"""Files that no table refers to any more, and since when."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, bindparam, delete, select

from matview.catalog import schema
from matview.catalog.lease import fenced
from matview.catalog.records import GarbageFile, Lease
from matview.catalog.store import Reading, Store, Writing


class Garbage:
    """Look up and forget; garbage is added by the transactions that make it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def older_than(self, seconds: float) -> list[GarbageFile]:
        """The files removed at least so long ago, oldest first."""
        removed_at = schema.garbage.c.removed_at
        return self._store.read(lambda reading: _where(reading, removed_at <= reading.now() - seconds))

    def of(self, table_id: int) -> list[GarbageFile]:
        """The garbage of one table, whatever its age."""
        return self._store.read(lambda reading: _where(reading, schema.garbage.c.table_id == table_id))

    def forget(self, lease: Lease, files: Sequence[GarbageFile]) -> None:
        """The files are gone; forgetting one that is not known does nothing."""
        fenced(self._store, lease, lambda writing: _forget(writing, files))


def add_garbage(writing: Writing, files: Sequence[GarbageFile]) -> None:
    """From now on these are garbage; a file added twice counts from the second time."""
    now = writing.now() if files else 0.0
    rows = [{"table_id": file.table_id, "path": file.path, "removed_at": now} for file in dict.fromkeys(files)]
    writing.put(schema.garbage, rows)


def _where(reading: Reading, condition: ColumnElement[bool]) -> list[GarbageFile]:
    columns = schema.garbage.c
    chosen = select(schema.garbage).where(condition)
    rows = reading.rows(chosen.order_by(columns.removed_at, columns.table_id, columns.path))
    return [GarbageFile(row["table_id"], row["path"]) for row in rows]


def _forget(writing: Writing, files: Sequence[GarbageFile]) -> None:
    columns = schema.garbage.c
    one = delete(schema.garbage).where(columns.table_id == bindparam("of_table"), columns.path == bindparam("at_path"))
    writing.change_each(one, [{"of_table": file.table_id, "at_path": file.path} for file in files])
