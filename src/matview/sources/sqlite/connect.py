"""Connections to a SQLite file. Nothing waits while it holds a lock: who meets one lets go and tries again."""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from matview.errors import BadSourceUrl, MatviewError, PrivilegeMissing, SourceRefused, SourceUnreachable
from matview.sources.urls import SourceUrl

OLDEST = (3, 37, 0)
PREFIX = re.compile(r"[a-z]\w{0,30}\Z", re.ASCII)
TRY_SECONDS = 0.02
"""How long one attempt waits for a lock: also a commit, which keeps new readers out while it waits for old ones."""
READ_SECONDS = 10.0
"""How long a reader waits for a commit to end; it holds nothing meanwhile."""
PATIENCE_SECONDS = 120.0
"""How long a write is tried again."""

Result = TypeVar("Result")
Verified = tuple[int, int, str, str]


@dataclass(frozen=True, slots=True)
class Database:
    """A file. Every task opens it anew: that takes less than a millisecond, and threads share nothing."""

    address: SourceUrl
    verified: set[Verified] = field(default_factory=set, repr=False, compare=False)
    """Tables that were found as they should be, in that state of that file's schema."""

    def __post_init__(self) -> None:
        if ":memory:" in self.address.database:
            raise BadSourceUrl("a database in memory belongs to one connection", help="name a file: sqlite:///shop.db")
        if sqlite3.sqlite_version_info < OLDEST:
            raise SourceUnreachable(f"SQLite {sqlite3.sqlite_version} is too old", help="it takes 3.37 or newer")

        for name, value in self.address.options:
            if name != "matview_schema" or not PREFIX.match(value):
                raise BadSourceUrl(f"{self.address}: {name}={value} is no option", help="there is matview_schema=NAME")

    @property
    def prefix(self) -> str:
        """What the names of Matview's tables and triggers begin with."""
        return dict(self.address.options).get("matview_schema", "matview")

    @property
    def path(self) -> Path:
        return Path(self.address.database).absolute()

    def open(self, wait: float = READ_SECONDS) -> sqlite3.Connection:
        """A connection to the file, which must be there; transactions are begun and ended in so many words."""
        if not self.path.is_file():
            raise SourceUnreachable(f"there is no file {str(self.path)!r}")
        name = f"file:{quote(str(self.path))}?mode=rw"
        return sqlite3.connect(name, wait, uri=True, isolation_level=None, check_same_thread=False)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One snapshot, from the beginning of the block to its end."""
        with self.errors(), closing(self.open()) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            yield connection

    def writing(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """The work as one transaction, as often as it takes to get the lock for it and to commit."""
        with self.errors(), closing(self.open(TRY_SECONDS)) as connection:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                try:
                    return attempt(connection, work)
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or time.monotonic() > deadline:
                        raise
                time.sleep(random.uniform(0.5, 1.5) * TRY_SECONDS)

    def schema(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Another pair whenever anything was created, altered or dropped, or the file is another one."""
        (version,) = connection.execute("PRAGMA main.schema_version").fetchone()
        return self.path.stat().st_ino, version

    @contextmanager
    def errors(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise translated(error, str(self.address)) from error


def attempt(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], Result]) -> Result:
    try:
        connection.execute("BEGIN IMMEDIATE")
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def is_busy(error: sqlite3.Error) -> bool:
    return code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


UNREACHABLE = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOTADB,
    }
)


def translated(error: sqlite3.Error, address: str) -> MatviewError:
    message = f"{address}: {error}"
    if is_busy(error):
        return SourceUnreachable(message, help="a transaction is open there for long; let it end, then run it again")
    if code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return PrivilegeMissing(message, help="the file and its directory must be writable for this user")
    return SourceUnreachable(message) if code(error) in UNREACHABLE else SourceRefused(message)
