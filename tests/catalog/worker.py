"""What other processes do to a catalog in these tests: `python worker.py COMMAND URL [ARGUMENT ...]`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import insert, update

from matview.catalog import Catalog, CatalogChanges, GarbageFile, schema
from matview.catalog.connect import database
from matview.catalog.store import Store, Writing
from matview.errors import BadSetting, LeaseLost, MatviewError


def say(*words: object) -> None:
    print(*words, flush=True)


def create_or_find(url: str) -> None:
    """Many at once: one makes the catalog, the others find it made."""
    try:
        Catalog.create(url, versions=3).close()
        say("made")
    except BadSetting:
        say("found")


def contend(url: str, guard: str, times: str) -> None:
    """Take the lease again and again; the guard file shows whether two ever hold it at once."""
    create_or_find(url)
    with Catalog.open(url) as catalog:
        for _ in range(int(times)):
            lease = catalog.lease.acquire(f"process {os.getpid()}", 30, wait=20)
            os.close(os.open(guard, os.O_CREAT | os.O_EXCL))
            catalog.transactions.begin(lease)
            catalog.transactions.commit(lease, CatalogChanges())
            Path(guard).unlink()
            catalog.lease.release(lease)
            say(lease.token)


def hang(url: str) -> None:
    """Change much in one write, then hang before it commits."""

    def work(writing: Writing) -> None:
        writing.change(update(schema.version).values(current_vn=99, maintenance_active=True, versions=7))
        writing.change(update(schema.lease).values(token=99, holder="hanging"))
        writing.change(insert(schema.garbage).values(table_id=1, path="half", removed_at=0))
        say("inside")
        time.sleep(60)

    Store(database(url, patience=10)).exclusive(work)


def churn(url: str) -> None:
    """Transactions without end, each with the same number of garbage files as its version."""
    catalog = Catalog.open(url)
    while True:
        lease = catalog.lease.acquire("churner", 30)
        vn = catalog.transactions.begin(lease)
        catalog.transactions.journal(lease, [vn])
        files = tuple(GarbageFile(vn, f"part-{i}") for i in range(vn))
        catalog.transactions.commit(lease, CatalogChanges(garbage=files, summary={"files": vn}))
        catalog.transactions.finish(lease)
        catalog.lease.release(lease)
        say("running")


def oversleep(url: str) -> None:
    """Take a lease, begin, wait for a line on standard input, then go on as if nothing had happened."""
    catalog = Catalog.open(url)
    lease = catalog.lease.acquire("sleeper", 0.05)
    catalog.transactions.begin(lease)
    say("asleep")
    sys.stdin.readline()
    attempts = (
        lambda: catalog.transactions.journal(lease, [1]),
        lambda: catalog.transactions.commit(lease, CatalogChanges()),
        lambda: catalog.lease.renew(lease, 10),
    )
    for attempt in attempts:
        try:
            attempt()
            say("went through")
        except LeaseLost:
            say("fenced")
        except MatviewError as error:
            say("failed", error)


COMMANDS: dict[str, Callable[..., None]] = {"contend": contend, "hang": hang, "churn": churn, "oversleep": oversleep}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
