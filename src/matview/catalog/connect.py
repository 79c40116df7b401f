"""How to reach the catalog's database, and how transactions begin there.

SQLite:     WAL, so that readers and the one writer never wait for one another; BEGIN for reads (one snapshot), BEGIN
            IMMEDIATE for writes (the lock is taken at once or not at all); no waiting inside SQLite: `Store` waits.
PostgreSQL: reads in REPEATABLE READ READ ONLY (one snapshot, never refused), writes in READ COMMITTED behind the latch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Dialect, Engine, TextClause, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from matview.errors import BadSetting

BEGIN = "matview_begin"
CONNECT_SECONDS = 10
SERVER_CLOCK = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
IDLE_IN_TRANSACTION = "60s"  # a process that hangs inside a write must not hold the latch for ever


@dataclass(frozen=True, slots=True)
class Database:
    """An engine, what a read and a write transaction ask of it, and its own clock if it has one."""

    engine: Engine
    reading: Mapping[str, Any]
    writing: Mapping[str, Any]
    clock_query: TextClause | None
    has_one_writer: bool
    """To begin a write keeps all other writers out."""

    @property
    def name(self) -> str:
        """How messages call it; without a password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def is_missing(self) -> bool:
        """An SQLite file that is not there; whether a server is there only connecting can tell."""
        return self.engine.dialect.name == "sqlite" and not Path(str(self.engine.url.database)).exists()


def url_of_file(path: str | Path) -> str:
    """The URL of a catalog in a file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path)).render_as_string()


def database(url: str, *, patience: float, must_exist: bool = True) -> Database:
    """The database behind an URL; nothing is opened yet."""
    parsed = _parse(url)
    match parsed.get_backend_name():
        case "sqlite":
            return _sqlite(parsed, "rw" if must_exist else "rwc", patience)
        case "postgresql":
            return _postgresql(parsed, patience)
        case other:
            raise BadSetting(f"the catalog cannot live in {other!r}", help="use sqlite:///FILE or postgresql://...")


def insert_of(dialect: Dialect) -> Any:
    """The dialect's own INSERT, which can overwrite. A dialect takes 0.05 s to import: only the one in use is."""
    return import_module(f"sqlalchemy.dialects.{dialect.name}").insert


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise BadSetting("the catalog's URL cannot be read", help="use sqlite:///FILE or postgresql://...") from error
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise BadSetting("the catalog is shared by processes and needs a file", help="use sqlite:///FILE")
    return parsed


def _sqlite(url: URL, mode: str, patience: float) -> Database:
    creator = _sqlite_creator(str(url.database), mode)
    engine = create_engine(url, creator=creator, poolclass=QueuePool, pool_timeout=patience)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(BEGIN, "BEGIN"))

    return Database(engine, {BEGIN: "BEGIN"}, {BEGIN: "BEGIN IMMEDIATE"}, None, has_one_writer=True)


def _sqlite_creator(path: str, mode: str) -> Callable[[], sqlite3.Connection]:
    uri = f"{Path(path).absolute().as_uri()}?mode={mode}"

    def connect() -> sqlite3.Connection:
        # isolation_level=None: the driver begins no transactions of its own; timeout=0: it never waits
        connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    return connect


def _postgresql(url: URL, patience: float) -> Database:
    limit = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}
    pool = {"pool_pre_ping": True, "pool_timeout": patience}
    engine = create_engine(url, isolation_level="READ COMMITTED", connect_args=limit, **pool)

    @event.listens_for(engine, "connect")
    def bound(connection: Any, _record: object) -> None:
        connection.autocommit = True
        connection.execute(f"SET lock_timeout = {max(1, round(patience * 1000))}")
        connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_IN_TRANSACTION}'")
        connection.autocommit = False

    snapshot = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    return Database(engine, snapshot, {}, text(SERVER_CLOCK), has_one_writer=False)
