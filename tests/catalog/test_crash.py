"""A process that is killed inside a write leaves all of it or nothing; one that overslept is fenced."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from sqlalchemy import event

from matview.catalog import Catalog, CatalogChanges, GarbageFile
from matview.errors import CatalogUnavailable, StorageFailure

from .conftest import WORKER

Worker = Callable[..., "subprocess.Popen[str]"]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.conforms("Q20")
def test_killed_inside_a_write(url: str, worker: Worker) -> None:
    with Catalog.create(url, versions=3) as catalog:
        before = catalog.version()
        process = worker("hang", url)
        assert _line(process) == "inside"
        assert catalog.version() == before
        process.kill()
        process.wait()
        lease = catalog.lease.acquire("ann", 60)
        assert lease.token == 1 and catalog.version() == before and catalog.garbage.older_than(0) == []
    Catalog.open(url).close()


@pytest.mark.conforms("Q20")
def test_killed_anywhere(url: str, worker: Worker) -> None:
    """Transactions without end, killed at any moment: whatever the catalog says then, it says wholly."""
    Catalog.create(url, versions=3).close()
    chance = random.Random(7)
    for _ in range(2):
        process = worker("churn", url)
        assert _line(process) == "running"
        time.sleep(0.1 + chance.random() * 0.2)
        process.kill()
        process.wait()
        with Catalog.open(url) as catalog:  # opening looks for contradictions
            _check_all_or_nothing(catalog)
            _take_over(catalog)


def _check_all_or_nothing(catalog: Catalog) -> None:
    committed = {t.vn for t in catalog.transactions.history(10_000) if t.state == "committed"}
    assert committed == set(range(2, catalog.version().current_vn + 1)) and committed
    files = [file.table_id for file in catalog.garbage.older_than(0)]
    assert {vn: files.count(vn) for vn in set(files)} == {vn: vn for vn in committed}


def _take_over(catalog: Catalog) -> None:
    """Fence the dead holder (its lease may still run: a real successor would wait), then repair what it left."""
    dead = catalog.lease.current()
    if dead is not None:
        catalog.lease.release(dead)
    lease = catalog.lease.acquire("successor", 60)
    for left in catalog.transactions.unfinished():
        if left.state == "committed":
            catalog.transactions.finish(lease, token=left.token)
        else:
            catalog.transactions.abort(lease, token=left.token, error="killed")
    assert catalog.transactions.unfinished() == [] and not catalog.version().maintenance_active
    catalog.lease.release(lease)


def test_a_revived_holder_is_fenced(url: str) -> None:
    with Catalog.create(url, versions=3) as catalog:
        command = [sys.executable, str(WORKER), "oversleep", url]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as sleeper:  # type: ignore[call-overload]
            assert _line(sleeper) == "asleep"
            lease = catalog.lease.acquire("successor", 60, wait=5)
            catalog.transactions.abort(lease, token=lease.token - 1, error="lost its lease")
            catalog.transactions.begin(lease)
            output, _ = sleeper.communicate("wake up\n", timeout=30)
        assert output.split() == ["fenced", "fenced", "fenced"]
        assert [(t.holder, t.state) for t in catalog.transactions.history()] == [
            ("successor", "active"),
            ("sleeper", "aborted"),
        ]


def test_a_full_disk_changes_nothing(sqlite_url: str) -> None:
    with Catalog.create(sqlite_url, versions=3) as catalog:
        lease = catalog.lease.acquire("ann", 60)
        catalog.transactions.begin(lease)
        engine = catalog._store.database.engine
        engine.dispose()
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 1"))
        files = tuple(GarbageFile(1, f"part-{i}" * 20) for i in range(1000))
        with pytest.raises(StorageFailure, match="full"):
            catalog.transactions.commit(lease, CatalogChanges(garbage=files))
        assert (catalog.version().current_vn, catalog.version().maintenance_active) == (1, True)
        assert catalog.garbage.older_than(0) == []
        catalog.transactions.abort(lease, error="no space")


def test_a_fork_must_open_its_own(sqlite_url: str) -> None:
    with Catalog.create(sqlite_url, versions=3) as catalog:
        child = os.fork()
        if child == 0:
            try:
                catalog.version()
                os._exit(1)
            except CatalogUnavailable:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert catalog.version().current_vn == 1
