"""Catalogs on SQLite and on a real PostgreSQL: every test that asks for `url` or `catalog` runs on both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from matview.algebra.schema import Column, Schema
from matview.catalog import Catalog, CatalogChanges, Lease, NewTable, url_of_file

WORKER = Path(__file__).with_name("worker.py")
SALES = Schema((Column("id", "bigint", False), Column("city", "string"), Column("amount", "decimal(12,2)")), ("id",))


class Hands:
    """A clock whose hands are moved by the test."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return url_of_file(tmp_path / "catalog.db")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.database)])
def url(request: pytest.FixtureRequest) -> str:
    """Where a catalog may be made."""
    return str(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"))


@pytest.fixture
def catalog(url: str, hands: Hands) -> Iterator[Catalog]:
    """A new catalog that keeps three versions and lives by the hands of `hands`."""
    with Catalog.create(url, versions=3, clock=hands) as made:
        yield made


@pytest.fixture
def other(url: str, catalog: Catalog, hands: Hands) -> Iterator[Catalog]:
    """The same catalog, opened by somebody else."""
    with Catalog.open(url, clock=hands) as opened:
        yield opened


@pytest.fixture
def maintain() -> Callable[..., Lease]:
    """Runs a whole maintenance transaction and gives the lease back."""

    def run(catalog: Catalog, changes: CatalogChanges | None = None, holder: str = "keeper") -> Lease:
        lease = catalog.lease.acquire(holder, 60, wait=20)
        catalog.transactions.begin(lease)
        catalog.transactions.commit(lease, changes or CatalogChanges())
        catalog.transactions.finish(lease)
        catalog.lease.release(lease)
        return lease

    return run


@pytest.fixture
def make_table(maintain: Callable[..., Lease]) -> Callable[..., int]:
    """Creates a table in a maintenance transaction of its own; gives its id."""

    def make(catalog: Catalog, name: str) -> int:
        lease = catalog.lease.acquire("maker", 60)
        table_id = catalog.tables.reserve(lease)
        catalog.lease.release(lease)
        maintain(catalog, CatalogChanges(created=(NewTable(table_id, name, SALES, f"tables/{table_id}"),)))
        return table_id

    return make


@pytest.fixture
def worker() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts worker.py with a command in a process of its own; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, str(WORKER), *map(str, arguments)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate()
