"""Transactions on the catalog's database: a read gives one snapshot, a write happens wholly or not at all.

Work is a function of `Reading` or `Writing`. It may be run again when somebody else was in the way, so it must touch
nothing but what it is given.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Delete, Executable, Insert, Select, Table, Update, select
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from matview.catalog import schema
from matview.catalog.connect import Database, insert_of
from matview.catalog.faults import is_busy, is_waited_out, translate
from matview.errors import CatalogCorrupt, CatalogUnavailable, MatviewError, WarehouseClosed

T = TypeVar("T")
Clock = Callable[[], float]

PATIENCE = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.005  # longer pauses starve whoever waits beside busier writers


class Reading:
    """A transaction that can only look."""

    __slots__ = ("_now", "connection")

    def __init__(self, connection: Connection, now: Callable[[Connection], float]) -> None:
        self.connection = connection
        self._now = now

    def rows(self, query: Executable) -> Sequence[RowMapping]:
        return self.connection.execute(query).mappings().all()

    def first(self, query: Executable) -> RowMapping | None:
        return self.connection.execute(query).mappings().first()

    def value(self, query: Executable) -> Any:
        """The first column of the first row; None without a row."""
        return self.connection.execute(query).scalar()

    def now(self) -> float:
        """Seconds since the epoch, by the clock that all users of this catalog share."""
        return self._now(self.connection)


class Writing(Reading):
    """A transaction that can look and change."""

    __slots__ = ()

    def change(self, statement: Insert | Update | Delete) -> int:
        """Run it; how many rows it met."""
        return self.connection.execute(statement).rowcount

    def change_each(self, statement: Insert | Update | Delete, parameters: Sequence[Mapping[str, Any]]) -> None:
        """Run it once for each set of parameters; not at all for none."""
        if parameters:
            self.connection.execute(statement, list(parameters))

    def put(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, or overwrite those of the same primary key."""
        if not rows:
            return
        keys = [column.name for column in table.primary_key]
        others = [column.name for column in table.columns if column.name not in keys]
        insert = insert_of(self.connection.dialect)(table)
        taken = {name: insert.excluded[name] for name in others}
        self.change_each(insert.on_conflict_do_update(index_elements=keys, set_=taken), rows)


class Store:
    """Runs work in transactions, waits for its turn, and says what went wrong in Matview's own errors."""

    def __init__(self, database: Database, *, clock: Clock | None = None, patience: float = PATIENCE) -> None:
        self.database = database
        self.patience = patience
        self._clock = clock if clock or database.clock_query is not None else time.time
        self._waits = 0
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False

    @property
    def waits(self) -> int:
        """How many transactions had to wait for another one."""
        return self._waits

    def read(self, work: Callable[[Reading], T]) -> T:
        """Look, in one snapshot."""
        return self._patiently(lambda: self._read_once(work))

    def write(self, work: Callable[[Writing], T]) -> T:
        """Change, all or nothing; on PostgreSQL beside other writers, so for single rows only."""
        return self._patiently(lambda: self._write_once(work))

    def exclusive(self, work: Callable[[Writing], T]) -> T:
        """Change, all or nothing, while no other `exclusive` work runs in any process."""

        def latched(writing: Writing) -> T:
            self._latch(writing)
            return work(writing)

        return self.write(work if self.database.has_one_writer else latched)

    def close(self) -> None:
        """Give the connections back; every later call raises WarehouseClosed."""
        self._closed = True
        self.database.engine.dispose()

    def _latch(self, writing: Writing) -> None:
        """Lock the row of the lease."""
        row: Select[Any] = select(schema.lease.c.id)
        if writing.first(row.with_for_update(skip_locked=True)) is None:
            self._waited()
            if writing.first(row.with_for_update()) is None:
                raise CatalogCorrupt(f"the catalog {self.database.name} has lost the row of its lease")

    def _read_once(self, work: Callable[[Reading], T]) -> T:
        with self._connect(self.database.reading) as connection, connection.begin():
            return work(Reading(connection, self._now))

    def _write_once(self, work: Callable[[Writing], T]) -> T:
        with self._connect(self.database.writing) as connection, connection.begin():
            return work(Writing(connection, self._now))

    def _connect(self, options: Mapping[str, Any]) -> Connection:
        return self.database.engine.connect().execution_options(**options)

    def _now(self, connection: Connection) -> float:
        if self._clock is not None:
            return self._clock()
        assert self.database.clock_query is not None
        return float(connection.execute(self.database.clock_query).scalar_one())

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Attempt until it succeeds, fails for good, or patience ends."""
        self._refuse_if_unusable()
        deadline, pause = time.monotonic() + self.patience, FIRST_PAUSE
        while True:
            try:
                return attempt()
            except DBAPIError as error:
                if is_waited_out(error) or (is_busy(error) and time.monotonic() >= deadline):
                    raise self._still_busy() from error
                if not is_busy(error):
                    raise translate(error, self.database.name) from error
            except SQLAlchemyError as error:
                raise translate(error, self.database.name) from error
            if pause == FIRST_PAUSE:
                self._waited()
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _still_busy(self) -> MatviewError:
        what = f"the catalog {self.database.name} was locked by another process for {self.patience:g} seconds"
        return CatalogUnavailable(what, help="find the process that holds a transaction open on it, and end it")

    def _waited(self) -> None:
        with self._lock:
            self._waits += 1

    def _refuse_if_unusable(self) -> None:
        if self._closed:
            raise WarehouseClosed("the catalog was closed")
        if os.getpid() != self._process:
            raise CatalogUnavailable("the catalog was opened before a fork", help="open it anew in the child process")
