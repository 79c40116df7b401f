"""Connections to a PostgreSQL source: one per thread that needs one, kept for the next; its errors as ours."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors as refusals

from matview.errors import (
    BadSourceUrl,
    MatviewError,
    PrivilegeMissing,
    SourceDrifted,
    SourceRefused,
    SourceUnreachable,
)
from matview.sources.postgres.layout import quote
from matview.sources.urls import SourceUrl

Connection = psycopg.Connection[tuple[Any, ...]]

OLDEST = 130000
"""PostgreSQL 13 is the first whose transaction ids have 64 bits in SQL."""

SETTINGS = """
    SET client_encoding = 'UTF8'; SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres';
    SET extra_float_digits = 1; SET bytea_output = 'hex'; SET standard_conforming_strings = on;
    SET row_security = off; SET jit = off; SET default_transaction_read_only = off; SET lock_timeout = 0;
    SET search_path = pg_catalog, pg_temp
"""
"""What a role or a database may have set otherwise. With `row_security = off` rows that a policy hides are an error.
Nothing is called or compared that others could have put into a schema on the path: names of tables alone are looked for
along it, by `describe`."""

SCHEMA_OPTION = "matview_schema"


class Connections:
    """Borrowed by one thread at a time; an error of the driver leaves as an error of ours, without the password."""

    def __init__(self, address: SourceUrl) -> None:
        self.address = address
        options = dict((*address.options, *address.secrets))
        self.schema = quote(options.pop(SCHEMA_OPTION, "matview"))
        self._options = options
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self.path: list[str] = []
        """The schemas in which a table is looked for that is named without one."""
        with self.borrow():
            pass

    @contextmanager
    def borrow(self) -> Iterator[Connection]:
        """A connection in autocommit; given back when the block ends well, rolled back and given up otherwise."""
        with self.translated():
            connection = self.take()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)

    @contextmanager
    def transaction(self, how: str) -> Iterator[Connection]:
        """A transaction of that kind, such as `ISOLATION LEVEL REPEATABLE READ READ ONLY`."""
        with self.borrow() as connection:
            connection.execute(f"BEGIN {how}")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self.translation(error) from None

    def translation(self, error: psycopg.Error) -> MatviewError:
        """What went wrong, as an error of ours; the driver's text may name hosts and roles, never a password."""
        what = f"{self.address}: {self.address.hidden(error.diag.message_primary or error)}"
        match error:
            case refusals.InvalidPassword() | refusals.InvalidAuthorizationSpecification():
                return SourceUnreachable(what, help=PASSWORD_HELP)
            case refusals.InsufficientPrivilege():
                return PrivilegeMissing(what)
            case refusals.UndefinedTable() | refusals.UndefinedColumn() | refusals.InvalidSchemaName():
                return SourceDrifted(what)
            case refusals.ProgramLimitExceeded():
                return SourceRefused(what)
            case psycopg.OperationalError() if "password" in what:
                return SourceUnreachable(what, help=PASSWORD_HELP)
            case psycopg.OperationalError():
                return SourceUnreachable(what)
            case psycopg.ProgrammingError() if error.sqlstate is None:
                return BadSourceUrl(what)
        return SourceRefused(what)

    def close(self) -> None:
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    def take(self) -> Connection:
        """A connection that its taker closes."""
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if is_alive(connection):
                    return connection
                connection.close()
        return self._new()

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed and not connection.closed and is_at_rest(connection):
                self._idle.append(connection)
                return
        connection.close()

    def _new(self) -> Connection:
        address = self.address
        named: dict[str, Any] = {
            "user": address.user,
            "host": address.host,
            "port": address.port,
            "dbname": address.database or None,
            "password": address.password.reveal(),
            "application_name": "matview",
            "connect_timeout": 10,
        }
        given = {name: value for name, value in named.items() if value is not None}
        try:
            connection = psycopg.connect("", autocommit=True, **given | self._options)
        except ValueError:
            raise BadSourceUrl(f"{address}: an option is no number, or no text") from None
        try:
            connection.prepare_threshold = None
            (self.path,) = connection.execute("SELECT current_schemas(false)").fetchone() or ([],)
            connection.execute(SETTINGS)
            if connection.info.server_version < OLDEST:
                raise SourceRefused(f"{address} is older than PostgreSQL 13")
        except BaseException:
            connection.close()
            raise
        return connection


PASSWORD_HELP = (
    "a password in a URL is not kept: name it by ?password_env=NAME, ?password_file=PATH or ${NAME} in its place"
)


def is_alive(connection: Connection) -> bool:
    """An idle connection has nothing to read, unless the server has closed it."""
    if connection.closed:
        return False
    readable, _, _ = select.select([connection.fileno()], [], [], 0)
    return not readable


def is_at_rest(connection: Connection) -> bool:
    return connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
