"""A MariaDB database of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.servers_mariadb import mariadb_databases, mariadb_server
from tests.sources.mariadb.lab import MariadbLab

from matview.sources import Source, connect

__all__ = ["lab", "mariadb_databases", "mariadb_server", "source"]


@pytest.fixture
def lab(mariadb_databases: Callable[[], str]) -> Iterator[MariadbLab]:
    lab = MariadbLab(mariadb_databases())
    yield lab
    lab.drop()


@pytest.fixture
def source(lab: MariadbLab) -> Iterator[Source]:
    source = connect(lab.url)
    yield source
    source.close()
