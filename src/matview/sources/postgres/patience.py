"""Locks on the tables of others: asked for again and again, each time for some milliseconds: nobody waits long."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from psycopg import errors as refusals

from matview.errors import SourceUnreachable
from matview.sources.postgres.connect import Connection, Connections

HOLDERS = """
    SELECT string_agg(format('process %%s of %%s, in a transaction since %%s', a.pid, a.usename, a.xact_start), '; ')
    FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.relation = ANY(%s) AND l.granted AND a.pid <> pg_backend_pid()
      AND a.datname = current_database() AND l.mode <> 'AccessShareLock'
"""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a lock is waited for at a time, how long in all, and who is told that it takes a while."""

    each: float = 0.02
    in_all: float = 120.0
    progress: Callable[[str], None] | None = None

    def briefly(
        self, connections: Connections, what: str, relations: list[int], action: Callable[[Connection], None]
    ) -> None:
        """The action in one transaction, in which no lock is waited for longer than `each`; from the beginning again
        if one was not to be had."""
        until, pause = time.monotonic() + self.in_all, self.each
        while True:
            try:
                with connections.borrow() as connection:
                    self._once(connection, action)
                return
            except Busy:
                if time.monotonic() + pause > until:
                    raise self._given_up(connections, what, relations) from None
            if self.progress is not None:
                self.progress(f"{what} is in use; trying again")
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, 1.0)

    def _once(self, connection: Connection, action: Callable[[Connection], None]) -> None:
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        connection.execute(f"SET LOCAL lock_timeout = {max(1, round(self.each * 1000))}")
        try:
            action(connection)
        except (refusals.LockNotAvailable, refusals.DeadlockDetected):
            raise Busy from None
        connection.execute("COMMIT")

    def _given_up(self, connections: Connections, what: str, relations: list[int]) -> SourceUnreachable:
        with connections.borrow() as connection:
            row = connection.execute(HOLDERS, [relations]).fetchone()
        who = row[0] if row and row[0] else "somebody"
        return SourceUnreachable(
            f"{what} was in use for {self.in_all:g} s: {who}",
            help="wait for that transaction to end, then run it again; nothing was changed",
        )


class Busy(Exception):
    """A lock was not to be had."""
