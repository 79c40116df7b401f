"""Databases for rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.maintain.rounds.asking import asked
from tests.maintain.rounds.killing import Killer
from tests.maintain.rounds.shops import HEAP, ORDERS
from tests.servers import PostgresServer
from tests.servers_mariadb import mariadb_databases, mariadb_server
from tests.sources.lab import Lab
from tests.sources.mariadb.lab import MariadbLab
from tests.sources.postgres.lab import PostgresLab
from tests.sources.sqlite.lab import SqliteLab

import matview

__all__ = ["asked", "mariadb_databases", "mariadb_server"]

FILLED = (
    ORDERS,
    HEAP,
    "INSERT INTO orders VALUES (1, 'Oslo', 12.50), (2, 'Bergen', -1.00), (3, NULL, NULL)",
    "INSERT INTO heap VALUES (1, 'Oslo', 1.50), (1, 'Oslo', 1.50), (NULL, NULL, NULL)",
)


@pytest.fixture
def till(tmp_path: Path) -> SqliteLab:
    """A SQLite file in which somebody sells."""
    lab = SqliteLab(tmp_path / "till.db", "wal")
    lab.execute(*FILLED)
    return lab


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", spark=spark, settings=matview.Settings(lease_ttl=5.0)) as opened:
        yield opened


@pytest.fixture(scope="session")
def killer(spark: Any) -> Iterator[Killer]:
    """Runs rounds in processes that it kills."""
    killer = Killer(spark)
    yield killer
    killer.close()


@pytest.fixture
def shop(postgres_lab_server: PostgresServer) -> PostgresLab:
    """A PostgreSQL database in which somebody sells."""
    lab = PostgresLab(postgres_lab_server.new_database(), 0)
    lab.execute(*FILLED)
    return lab


@pytest.fixture
def store(mariadb_databases: Callable[[], str]) -> Iterator[MariadbLab]:
    """A MariaDB database in which somebody sells."""
    lab = MariadbLab(mariadb_databases())
    lab.execute(*FILLED)
    yield lab
    lab.drop()


@pytest.fixture(params=["till", "shop", "store"], ids=["sqlite", "postgresql", "mariadb"])
def any_lab(request: pytest.FixtureRequest) -> Lab:
    """Each kind of source that there is."""
    found: Lab = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["till", "shop"], ids=["sqlite", "postgresql"])
def lab(request: pytest.FixtureRequest) -> Lab:
    """Each kind of source that rounds are walked through with."""
    found: Lab = request.getfixturevalue(request.param)
    return found
