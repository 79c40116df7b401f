"""The first state: one snapshot, or several that show the same. InnoDB keeps old rows for whoever reads in a snapshot,
so that nobody waits for it.

MariaDB lends no snapshot to another connection. But every change of a captured table is in its delta tables: two
snapshots that show the same delta rows show the same tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from queue import Queue

import pyarrow as pa
import pymysql

from matview.sources.engine import FirstState, Slice, SourceTable, Taken
from matview.sources.mariadb.capture import Place, arrow, asked_for, places
from matview.sources.mariadb.connect import Connection, Database, execute, fetched, streamed
from matview.sources.mariadb.install import raise_drift
from matview.sources.mariadb.layout import quote
from matview.sources.mariadb.numbers import Numbers
from matview.sources.mariadb.objects import NUMBER
from matview.sources.names import split
from matview.sources.sides import SIDES
from matview.sources.slicing import bounds, share

SNAPSHOTS = 4
ATTEMPTS = 20
BATCH = 10_000
SHOWN = dict[str, dict[str, list[list[int]]]]
INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})


class MariadbFirstState(FirstState):
    """The tables as they were when it was made; each snapshot serves one reader at a time."""

    def __init__(self, database: Database, shown: SHOWN, snapshots: Sequence[Connection]) -> None:
        self.database = database
        self.taken: Taken = {"tables": shown, "before": {}}
        self.free: Queue[Connection] = Queue()
        for connection in snapshots:
            self.free.put(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        connection = self.free.get()
        try:
            with self.database.errors():
                yield connection
        finally:
            self.free.put(connection)

    def slices(self, table: SourceTable, rows: int) -> Sequence[Slice]:
        """Equal ranges of a key that is one number; any other table is one slice."""
        kinds = {column.name: column.type for column in table.columns}
        with self.snapshot() as connection:
            there = count(connection, table)
        if len(table.key) != 1 or kinds[table.key[0]] not in INTEGERS:
            return [Slice(table, "TRUE", there)]
        key = quote(table.key[0])
        with self.snapshot() as connection:
            ((least, greatest),) = fetched(connection, f"SELECT min({key}), max({key}) FROM {place_of(table)}")
        if least is None:
            return [Slice(table, "TRUE", there)]
        ranges = list(pairwise(bounds(least, greatest, rows)))
        size = share(there, len(ranges))
        return [Slice(table, f"{key} >= {low:d} AND {key} < {high:d}", size) for low, high in ranges]

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        names = ", ".join(asked_for(column.source_type, column.name) for column in part.table.columns)
        query = f"SELECT {names} FROM {place_of(part.table)} WHERE {part.condition}"
        with self.snapshot() as connection:
            for rows in streamed(connection, query, BATCH):
                yield arrow(part.table, rows)


def count(connection: Connection, table: SourceTable) -> int:
    """About how many rows there are, as InnoDB's statistics have it."""
    query = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s"
    found = fetched(connection, query, (split(table.name)[-1],))
    return int(found[0][0] or 0) if found else 0


def place_of(table: SourceTable) -> str:
    return quote(split(table.name)[-1])


@contextmanager
def first_state(database: Database, tables: Sequence[SourceTable]) -> Iterator[MariadbFirstState]:
    opened = list[Connection]()
    try:
        with database.errors():
            opened.append(begun(database))
            raise_drift(opened[0], database, tables)
            found = places(opened[0], database, tables)
            shown = seen(opened[0], found)
            for _ in range(ATTEMPTS):
                if len(opened) < SNAPSHOTS:
                    opened += same(database, found, shown)
        yield MariadbFirstState(database, shown, opened)
    finally:
        for connection in opened:
            with suppress(pymysql.MySQLError, OSError):
                connection.close()


def begun(database: Database) -> Connection:
    connection = database.open()
    execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    return connection


def seen(connection: Connection, found: Sequence[Place]) -> SHOWN:
    """The delta rows that a snapshot shows."""
    return {
        place.table.name: {
            side: Numbers.of(
                n for (n,) in fetched(connection, f"SELECT {NUMBER} FROM {place.objects.side(side)}")
            ).plain()
            for side in SIDES
        }
        for place in found
    }


def same(database: Database, found: Sequence[Place], shown: SHOWN) -> list[Connection]:
    """Another snapshot, if nothing was captured between the first one and it."""
    connection = begun(database)
    if seen(connection, found) == shown:
        return [connection]
    connection.close()
    return []
