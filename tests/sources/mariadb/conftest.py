"""A MariaDB database of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.servers_mariadb import mariadb_databases, mariadb_server, opened
from tests.sources.mariadb.lab import MariadbLab

from matview.sources import Source, connect

__all__ = ["lab", "mariadb_databases", "mariadb_server", "source"]


@pytest.fixture
def lab(mariadb_databases: Callable[[], str]) -> Iterator[MariadbLab]:
    lab = MariadbLab(mariadb_databases())
    yield lab
    connection = opened(lab.url)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT DATABASE()")
        ((name,),) = cursor.fetchall()
        cursor.execute(f"DROP DATABASE {name}")
        cursor.execute(f"DROP DATABASE IF EXISTS matview_{name}")


@pytest.fixture
def source(lab: MariadbLab) -> Iterator[Source]:
    source = connect(lab.url)
    yield source
    source.close()
