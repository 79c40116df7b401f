"""Connections to a MariaDB server."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.connections import Connection as Connection
from pymysql.constants import ER, FIELD_TYPE
from pymysql.converters import conversions
from pymysql.cursors import Cursor, SSCursor

from matview.errors import (
    BadSourceUrl,
    CannotCapture,
    MatviewError,
    PrivilegeMissing,
    SourceDrifted,
    SourceRefused,
    SourceUnreachable,
)
from matview.sources.urls import SourceUrl

OLDEST = (10, 6)
LONGEST_NAME = 64
PREFIX = re.compile(r"[a-z]\w{0,40}\Z", re.ASCII)
SESSION = (
    "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, SESSION time_zone = '+00:00', lock_wait_timeout = 10, "
    "sql_mode = 'NO_ENGINE_SUBSTITUTION', "
    "tx_isolation = 'REPEATABLE-READ', max_statement_time = 0, net_write_timeout = 28800, wait_timeout = 28800, "
    "autocommit = 1"
)
"""A reader that takes hours is not cut off, and times are those of the world."""
TEMPORAL = (
    *(FIELD_TYPE.DATE, FIELD_TYPE.DATETIME, FIELD_TYPE.NEWDATE, FIELD_TYPE.TIME, FIELD_TYPE.TIMESTAMP),
    FIELD_TYPE.BIT,
)
CONVERSIONS = {key: value for key, value in conversions.items() if key not in TEMPORAL}
OPTIONS = frozenset({"matview_schema", "unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "connect_timeout"})

DENIED = frozenset(
    {
        *(ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR),
        *(ER.SPECIFIC_ACCESS_DENIED_ERROR, ER.PROCACCESS_DENIED_ERROR, ER.BINLOG_CREATE_ROUTINE_NEED_SUPER),
    }
)
BROKEN = (pymysql.err.OperationalError, pymysql.err.InterfaceError)
TABLE_CHANGED = 1412
LOST = range(2000, 2100)


@dataclass(frozen=True, slots=True)
class Database:
    """A database of a server. Every task opens a connection of its own, so that threads share nothing."""

    address: SourceUrl
    arguments: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.address.database:
            raise BadSourceUrl(f"{self.address} names no database", help="mariadb://user@host/database")
        given = (*self.address.options, *self.address.secrets)
        if unknown := sorted(name for name, _ in given if name not in OPTIONS):
            raise BadSourceUrl(f"{self.address}: there is no option {unknown[0]}", help=f"there are {sorted(OPTIONS)}")
        if not PREFIX.match(self.prefix) or self.own == self.name:
            raise BadSourceUrl(f"{self.address}: {self.prefix} is no name for a database of Matview's own")
        object.__setattr__(self, "arguments", driver_arguments(self.address))

    @property
    def name(self) -> str:
        return self.address.database

    @property
    def prefix(self) -> str:
        """What the names of triggers begin with."""
        return dict(self.address.options).get("matview_schema", "matview")

    @property
    def own(self) -> str:
        """The database of what belongs to Matview, beside that of the tables: who captures need not write to those."""
        if self.prefix != "matview":
            return self.prefix
        name = f"matview_{self.name}"
        return name if len(name) <= LONGEST_NAME else f"matview_{hashlib.sha256(self.name.encode()).hexdigest()[:32]}"

    def open(self) -> Connection:
        with self.errors():
            password = self.address.password.reveal() or ""
            connection = pymysql.connect(**self.arguments, password=password, conv=CONVERSIONS, charset="utf8mb4")
            execute(connection, SESSION)
        return connection

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection; each statement is a transaction."""
        with self.errors():
            connection = self.open()
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One snapshot of the committed state, from the beginning of the block to its end."""
        with self.connected() as connection:
            execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            yield connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """The driver's errors as ours."""
        try:
            yield
        except pymysql.MySQLError as error:
            raise translated(error, self) from error


def driver_arguments(address: SourceUrl) -> dict[str, Any]:
    options: dict[str, Any] = {name: value for name, value in address.options if name != "matview_schema"}
    if "connect_timeout" in options:
        options["connect_timeout"] = seconds(address, options["connect_timeout"])
    place = {"user": address.user, "host": address.host or "localhost", "port": address.port or 3306}
    return {**place, "database": address.database, **options}


def seconds(address: SourceUrl, text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,6}", text):
        raise BadSourceUrl(f"{address}: connect_timeout is a number of seconds")
    return int(text)


def execute(connection: Connection, sql: str, parameters: Sequence[Any] | None = None) -> int:
    with connection.cursor(Cursor) as cursor:
        return int(cursor.execute(sql, parameters))


def fetched(connection: Connection, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor(Cursor) as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def streamed(connection: Connection, sql: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
    """The rows some at a time, as the server sends them; the rest is thrown away when nobody asks for more."""
    with connection.cursor(SSCursor) as cursor:
        cursor.execute(sql)
        while rows := cursor.fetchmany(size):
            yield list(rows)


def check_version(connection: Connection) -> None:
    ((version,),) = fetched(connection, "SELECT version()")
    if "MariaDB" not in version:
        raise CannotCapture(f"the server is {version}, not MariaDB", help="MySQL itself was never tried with Matview")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise CannotCapture(f"MariaDB {version} is too old", help="10.6 is the oldest that will do")


def grants(database: Database) -> str:
    """The fewest privileges that will do."""
    role, own = f"`{database.address.user}`@...", database.own.replace("_", r"\_")
    return (
        f"GRANT SELECT, TRIGGER ON `{database.name}`.* TO {role}; GRANT ALL ON `{own}`.* TO {role}; "
        f"GRANT PROCESS ON *.* TO {role}"
    )


def number_of(error: pymysql.MySQLError) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def translated(error: pymysql.MySQLError, database: Database) -> MatviewError:
    number, text = number_of(error), error.args[-1] if error.args else error
    message = f"{database.address}: {database.address.hidden(text)}"
    if number in DENIED:
        return PrivilegeMissing(message, help=grants(database))
    if number == TABLE_CHANGED:
        return SourceDrifted(message, help="a table was truncated or altered while it was read; run it again")
    if number in LOST or number in UNREACHABLE or (number == 0 and isinstance(error, BROKEN)):
        return SourceUnreachable(message)
    return SourceRefused(message)


UNREACHABLE = frozenset(
    {
        *(ER.ACCESS_DENIED_ERROR, ER.BAD_DB_ERROR, ER.CON_COUNT_ERROR, ER.SERVER_SHUTDOWN, ER.LOCK_WAIT_TIMEOUT),
        *(ER.LOCK_DEADLOCK, ER.DISK_FULL, ER.RECORD_FILE_FULL, ER.HOST_NOT_PRIVILEGED, ER.TOO_MANY_USER_CONNECTIONS),
        *(ER.QUERY_INTERRUPTED, 1927, 1969),
    }
)
"""What passes by itself, or with another URL: among them a connection killed and a statement that took too long."""
