from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.servers import PostgresServer
from tests.sources.postgres.lab import PostgresLab

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def lab_database(postgres_lab_server: PostgresServer) -> str:
    return postgres_lab_server.new_database()


@pytest.fixture
def lab(lab_database: str) -> Iterator[PostgresLab]:
    """A schema of its own; to make a database for each test would take longer than most of them."""
    lab = PostgresLab(lab_database, next(NUMBERS))
    yield lab
    lab.close()
