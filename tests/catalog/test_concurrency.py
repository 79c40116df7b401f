"""Many threads, many processes: never two holders, never a reader that waits."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.waiting import wait_until

from matview.catalog import Catalog, CatalogChanges
from matview.catalog.store import Reading
from matview.errors import CatalogUnavailable, MaintenanceBusy

Worker = Callable[..., "subprocess.Popen[str]"]


@contextmanager
def long_write(url: str) -> Iterator[None]:
    """Somebody's write transaction that does not end: the lock of SQLite, the row locks of PostgreSQL."""
    engine = create_engine(url, connect_args={"isolation_level": None} if url.startswith("sqlite") else {})
    with engine.connect() as connection:
        if url.startswith("sqlite"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.execute(text("UPDATE matview_lease SET holder = 'somebody'"))
        connection.execute(text("UPDATE matview_version SET versions = 77"))
        try:
            yield
        finally:
            connection.rollback()
            engine.dispose()


@pytest.mark.conforms("Q14")
def test_readers_are_never_blocked_by_a_write(url: str) -> None:
    with Catalog.create(url, versions=3) as catalog, long_write(url), Catalog.open(url) as newcomer:
        for reader in (catalog, newcomer):
            assert reader.version().versions == 3
            assert reader.tables.live(1) == [] and reader.transactions.unfinished() == []
            assert reader.lease.current() is None and reader.sessions.count_live() == 0
        assert catalog.waits == newcomer.waits == 0


@pytest.mark.conforms("Q14")
def test_on_postgresql_sessions_come_and_go_during_a_write(postgres_url: str) -> None:
    with Catalog.create(postgres_url, versions=3) as catalog, long_write(postgres_url):
        session = catalog.sessions.open("reader", "tuple", 60)
        assert catalog.sessions.heartbeat(session.id)
        catalog.sessions.close(session.id)
        assert catalog.waits == 0


def test_writers_wait_and_then_give_up(url: str) -> None:
    Catalog.create(url, versions=3).close()
    with Catalog.open(url, patience=0.3) as catalog:
        with long_write(url):
            began = time.monotonic()
            with pytest.raises(CatalogUnavailable, match="locked by another"):
                catalog.lease.acquire("ann", 60)
            assert 0.25 <= time.monotonic() - began < 8
            assert catalog.waits == 1
        catalog.lease.acquire("ann", 60)
        assert catalog.waits == 1


def test_writers_wait_and_then_get_through(url: str) -> None:
    with Catalog.create(url, versions=3) as catalog:
        got: list[int] = []
        with long_write(url):
            waiter = threading.Thread(target=lambda: got.append(catalog.lease.acquire("ann", 60).token))
            waiter.start()
            wait_until(lambda: catalog.waits)
            assert got == []
        waiter.join()
        assert got == [1] and catalog.waits == 1


def test_a_read_is_one_snapshot(url: str) -> None:
    """Two looks in one read agree, whatever is committed between them."""
    with Catalog.create(url, versions=3) as catalog, Catalog.open(url) as other:

        def twice(reading: Reading) -> list[int]:
            looks = []
            for _ in range(2):
                looks.append(reading.value(text("SELECT current_vn FROM matview_version")))
                lease = other.lease.acquire("ann", 60)
                other.transactions.begin(lease)
                other.transactions.commit(lease, CatalogChanges())
                other.lease.release(lease)
            return looks

        assert catalog._store.read(twice) == [1, 1]
        assert catalog.version().current_vn == 3


def test_threads_share_a_catalog(url: str) -> None:
    tokens: list[int] = []
    holders, most = [0], [0]
    lock = threading.Lock()

    def contend(catalog: Catalog, name: str) -> None:
        for _ in range(4):
            lease = catalog.lease.acquire(name, 30, wait=20)
            with lock:
                holders[0] += 1
                most[0] = max(most[0], holders[0])
                tokens.append(lease.token)
            time.sleep(0.002)
            with lock:
                holders[0] -= 1
            catalog.lease.release(lease)

    with Catalog.create(url, versions=3) as one, Catalog.open(url) as two:
        threads = [threading.Thread(target=contend, args=((one, two)[i % 2], f"thread {i}")) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == [1] and tokens == list(range(1, 33))


def test_one_of_many_who_ask_at_once_gets_the_lease(url: str) -> None:
    """Without waiting, exactly one wins, and a lease that ran out is taken by exactly one."""
    with Catalog.create(url, versions=3) as catalog:
        start = threading.Barrier(10)
        won: list[int] = []
        refused: list[str] = []

        def ask(name: str) -> None:
            start.wait()
            try:
                won.append(catalog.lease.acquire(name, 30).token)
            except MaintenanceBusy as busy:
                refused.append(busy.what)

        threads = [threading.Thread(target=ask, args=(f"thread {i}",)) for i in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert won == [1] and len(refused) == 9


@pytest.mark.conforms("Q1")
def test_processes_never_hold_the_lease_together(url: str, tmp_path: Path, worker: Worker) -> None:
    """They start with nothing: one creates the catalog, all contend for the lease."""
    processes = [worker("contend", url, tmp_path / "guard", 8) for _ in range(3)]
    outputs = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(output.pop(0) for output in outputs) == ["found", "found", "made"]
    given = [[int(token) for token in output] for output in outputs]
    assert all(tokens == sorted(tokens) for tokens in given)
    assert sorted(token for tokens in given for token in tokens) == list(range(1, 25))
    with Catalog.open(url) as catalog:
        assert catalog.version().current_vn == 25


def test_settings_set_by_many_at_once(url: str) -> None:
    with Catalog.create(url, versions=3) as catalog:
        values = [str(i) for i in range(8)]
        threads = [threading.Thread(target=catalog.settings.set, args=("same", value)) for value in values]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert catalog.settings.get("same") in values


def test_sqlite_begins_as_told_and_waits_for_nobody(sqlite_url: str, tmp_path: Path) -> None:
    """A write holds the lock before it has changed anything, a read holds none; the driver begins nothing itself."""
    other = sqlite3.connect(tmp_path / "catalog.db", timeout=0, isolation_level=None)

    def lock_is_free(_: Reading) -> bool:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        other.execute("ROLLBACK")
        return True

    with Catalog.create(sqlite_url, versions=3) as catalog:
        assert catalog._store.read(lock_is_free)
        assert not catalog._store.write(lock_is_free)
        raw = catalog._store.database.engine.raw_connection()
        assert isinstance(raw.driver_connection, sqlite3.Connection)
        assert raw.driver_connection.isolation_level is None
        assert not raw.driver_connection.in_transaction
        raw.close()
    other.close()
