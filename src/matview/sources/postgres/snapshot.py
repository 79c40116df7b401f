"""The first state: tables under one exported snapshot, in slices of their pages, beside writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile

import pyarrow as pa
from psycopg import errors as refusals

from matview.sources.engine import FirstState, Slice, SourceTable, Taken
from matview.sources.postgres.arrow import read
from matview.sources.postgres.capture import SNAPSHOT, make_durable, pages, refuse_drift, row_fields, snapshot_of
from matview.sources.postgres.connect import Connection, Connections
from matview.sources.postgres.describe import oid_of
from matview.sources.postgres.facts import Recorded, facts_of
from matview.sources.postgres.layout import literal
from matview.sources.postgres.sets import Transactions
from matview.sources.postgres.values import named
from matview.sources.types import arrow_schema

SAMPLED = 32
"""Pages that are counted where the source's statistics do not say how many rows a page has."""


@dataclass(frozen=True, slots=True)
class Heap:
    """A table with rows, or a partition: its pages, and about how many rows one has."""

    name: str
    pages: int
    density: float


class PostgresFirstState(FirstState):
    """Slices of pages, read under the snapshot by connections of their own.

    Each keeps its lock to the end. One that comes when somebody already waits for the table alone (TRUNCATE, ALTER
    TABLE) would wait behind him, and he waits for us: the slice is then read by the connection that holds the snapshot.
    """

    def __init__(
        self,
        connections: Connections,
        holder: Connection,
        known: Mapping[int, Recorded],
        names: Sequence[str],
        taken: Taken,
    ) -> None:
        self.taken = taken
        self._connections = connections
        self._holder = holder
        self._alone = threading.Lock()
        self._known = known
        self._names = names
        self._heaps = {oid: [*heaps(holder, record)] for oid, record in known.items()}
        self._idle: list[Connection] = []
        (self._snapshot,) = holder.execute("SELECT pg_export_snapshot()").fetchone() or ("",)

    def slices(self, table: SourceTable, rows: int) -> Sequence[Slice]:
        return [part for heap in self._heaps[oid_of(table)] for part in slices_of(table, heap, rows)]

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        with self._connections.translated():
            reader = self._reader()
            if reader is None:
                yield from self._read_alone(part)
                return
            try:
                yield from self._read(reader, part)
            except BaseException:
                reader.close()
                raise
            self._idle.append(reader)

    def _read(self, connection: Connection, part: Slice) -> Iterator[pa.RecordBatch]:
        known = self._known[oid_of(part.table)]
        with named(connection, part.table, known.carriers, part.condition) as source:
            yield from read(connection, row_fields(part.table, known), source)

    def _read_alone(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """By the one connection, through a file: who wants the next slice does not wait for who takes this one."""
        with TemporaryFile() as kept:
            with self._alone, pa.ipc.new_stream(kept, arrow_schema(part.table)) as writer:
                for batch in self._read(self._holder, part):
                    writer.write_batch(batch)
            kept.seek(0)
            yield from pa.ipc.open_stream(kept)

    def _reader(self) -> Connection | None:
        """A connection under the snapshot, with the locks; None if they are not to be had at once."""
        if self._idle:
            return self._idle.pop()
        connection = self._connections.take()
        connection.execute(f"BEGIN {SNAPSHOT}")
        connection.execute(f"SET TRANSACTION SNAPSHOT {literal(self._snapshot)}")
        try:
            lock(connection, self._names, "NOWAIT")
        except refusals.LockNotAvailable:
            connection.close()
            return None
        return connection

    def end(self) -> None:
        while self._idle:
            self._idle.pop().close()


def heaps(connection: Connection, record: Recorded) -> Iterator[Heap]:
    for oid, member in sorted(record.facts["members"].items()):
        if member["kind"] != "p":
            size = pages(connection, member["name"])
            yield Heap(member["name"], size, density(connection, member["name"], int(oid), size))


def density(connection: Connection, name: str, oid: int, size: int) -> float:
    row = connection.execute("SELECT reltuples, relpages FROM pg_class WHERE oid = %s", [oid]).fetchone()
    if row and row[0] > 0 and row[1] > 0:
        return max(1.0, float(row[0] / row[1]))
    sampled = connection.execute(f"SELECT count(*) FROM ONLY {name} WHERE ctid < '({SAMPLED},0)'").fetchone()
    return max(1.0, (sampled[0] if sampled else 0) / max(1, min(SAMPLED, size)))


def slices_of(table: SourceTable, heap: Heap, rows: int) -> Iterator[Slice]:
    """The last one has no end."""
    step = max(1, round(rows / heap.density))
    for first in range(0, heap.pages, step):
        end = f" AND ctid < '({first + step},0)'" if first + step < heap.pages else ""
        about = round(heap.density * min(step, heap.pages - first))
        yield Slice(table, f"(SELECT * FROM ONLY {heap.name} WHERE ctid >= '({first},0)'{end}) AS slice", about)


@contextmanager
def first_state(connections: Connections, tables: Sequence[SourceTable]) -> Iterator[PostgresFirstState]:
    """Locks come before the snapshot: TRUNCATE and ALTER TABLE respect locks, not snapshots."""
    schema = connections.schema
    with connections.borrow() as connection:
        names = current_names(connection, schema, tables)
    with connections.transaction(SNAPSHOT) as holder:
        holder.execute("SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = '60s'")
        lock(holder, names)
        snapshot, written = snapshot_of(holder)
        known = refuse_drift(holder, schema, tables)
        make_durable(connections, written)
        state = PostgresFirstState(connections, holder, known, names, Transactions.finished(snapshot).taken())
        try:
            yield state
        finally:
            state.end()


def current_names(connection: Connection, schema: str, tables: Sequence[SourceTable]) -> list[str]:
    """The tables and their partitions. What is dropped or renamed from here on is told later, in the snapshot."""
    facts = facts_of(connection, schema, map(oid_of, tables))
    return [member["name"] for one in facts.values() for member in one["members"].values()]


def lock(connection: Connection, names: Sequence[str], how: str = "") -> None:
    """So weak a lock that nobody waits for it who reads or writes."""
    if names:
        connection.execute(f"LOCK TABLE ONLY {', ONLY '.join(names)} IN ACCESS SHARE MODE {how}")
