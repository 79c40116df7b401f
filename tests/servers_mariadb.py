"""A real MariaDB for tests: the one that MATVIEW_TEST_MARIADB names, or one of our own where it is installed."""

from __future__ import annotations

import getpass
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest
from tests.waiting import wait_until

from matview.sources.urls import SourceUrl

NAMED = "MATVIEW_TEST_MARIADB"
MISSING = f"no MariaDB: install mariadb-server, or let {NAMED} name one as mariadb://user:password@host/"
DATABASE = "matview_test"
ZONE = "Europe/Oslo"
"""The zone of our own server: one in which an hour comes twice a year."""


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    """The URL of a server on which everything is allowed, without a database."""
    if given := os.environ.get(NAMED):
        yield given
        return
    program = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("mariadb-install-db") is None:
        pytest.skip(MISSING)
    home = Path(tempfile.mkdtemp(prefix="matview-maria-"))
    try:
        with started(program, home) as socket:
            yield f"mariadb://root@localhost/?unix_socket={socket}"
    finally:
        shutil.rmtree(home, ignore_errors=True)


class started:  # noqa: N801
    """A server in a directory of its own, which nobody but this machine can reach."""

    def __init__(self, program: str, home: Path, *options: str) -> None:
        user = "mysql" if getpass.getuser() == "root" else getpass.getuser()
        passing = home / "tmp"  # a server that starts removes what others have in a directory that they share
        passing.mkdir()
        if user == "mysql":
            shutil.chown(home, user)
            shutil.chown(passing, user)
        self.socket = home / "socket"
        common = ["--no-defaults", f"--datadir={home / 'data'}", f"--tmpdir={passing}", f"--user={user}"]
        subprocess.run(
            ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True,
            capture_output=True,
        )
        self.command = [
            *(program, *common, f"--socket={self.socket}", "--skip-networking", "--local-infile=1"),
            *("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--performance-schema=OFF"),
            *(f"--log-error={home / 'errors'}", f"--pid-file={home / 'pid'}", *options),
        ]

    def __enter__(self) -> Path:
        self.process = subprocess.Popen(self.command, env={**os.environ, "TZ": ZONE})
        wait_until(self.answers, 60)
        return self.socket

    def answers(self) -> bool:
        assert self.process.poll() is None, "the server ended at once"
        with suppress(pymysql.MySQLError):
            pymysql.connect(unix_socket=str(self.socket), user="root").close()
            return True
        return False

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)


def opened(url: str, **options: object) -> pymysql.Connection:
    """A connection of a user to a server of these tests."""
    address = SourceUrl.parse(url)
    place = dict(address.options)
    return pymysql.connect(
        user=address.user,
        password=address.password.reveal() or "",
        host=address.host or "localhost",
        port=address.port or 3306,
        unix_socket=place.get("unix_socket"),
        database=address.database or None,
        charset="utf8mb4",
        **options,
    )


@pytest.fixture(scope="session")
def mariadb_databases(mariadb_server: str) -> Callable[[], str]:
    """An URL with an empty database of its own at each call."""
    numbers = itertools.count()

    def new_database() -> str:
        name = f"{DATABASE}_{os.getpid()}_{next(numbers)}"
        connection = opened(mariadb_server)
        with connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        start, slash, rest = mariadb_server.rpartition("/?")
        return f"{start}/{name}?{rest}" if slash else f"{mariadb_server.rstrip('/')}/{name}"

    return new_database
