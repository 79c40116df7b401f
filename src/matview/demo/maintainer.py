"""Maintenance in a loop: one transaction after the other, each several statements on two tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from matview.demo.chain import (
    CITY_TOTALS,
    DAILY_SALES,
    DAYS,
    FIRST_DAY,
    Change,
    Insert,
    Statement,
    first_totals,
    maintenance,
    sales,
)
from matview.demo.events import Began, Changed, Committed, Event, HalfCommitted
from matview.errors import BadSetting
from matview.maintain.outcome import Outcome
from matview.maintain.transaction import MaintenanceTransaction
from matview.warehouse import Warehouse

LEAST = 2  # transactions: with fewer, nobody can have met a change
HALF = "table DailySales"  # the step after which one of the two tables is committed


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between transactions, between statements, and between the commits of the two tables.

    The last one takes milliseconds on tables this small; it is stretched, with and without the rewrite alike, to the
    time that large tables take.
    """

    gap: float = 1.5
    statement: float = 0.3
    half: float = 0.5

    def __post_init__(self) -> None:
        if min(self.gap, self.statement, self.half) < 0:
            raise BadSetting("a pace has no negative times")


def load(warehouse: Warehouse, seed: int) -> int:
    """The tables and the sales of the first days, as one version."""
    with warehouse.transaction() as tx:
        for table in (DAILY_SALES, CITY_TOTALS):
            tx.sql(table)
        tx.insert("DailySales", warehouse.spark.createDataFrame(sales(FIRST_DAY, DAYS, seed)))
        tx.sql(first_totals())
        tx.commit()
        return tx.version


class Maintainer:
    """Runs transactions until `deadline` (of time.monotonic) leaves no time for half of another; at least two."""

    def __init__(
        self, warehouse: Warehouse, seed: int, pace: Pace, tell: Callable[[Event], None], stop: threading.Event
    ) -> None:
        self._warehouse = warehouse
        self._seed = seed
        self._pace = pace
        self._tell = tell
        self._stop = stop

    def work(self, deadline: float) -> None:
        last = 0.0
        for number, changes in enumerate(maintenance(self._seed)):
            if self._stop.wait(self._pace.gap) or (number >= LEAST and time.monotonic() + last / 2 > deadline):
                return
            began = time.monotonic()
            self._transact(changes)
            last = time.monotonic() - began

    def _transact(self, changes: tuple[Change, ...]) -> None:
        version = 0  # known once the transaction has begun; the steps that need it come later

        def step(name: str) -> None:
            if name == HALF:
                self._tell(HalfCommitted(time.time(), version, name.removeprefix("table ")))
                time.sleep(self._pace.half)
            elif name == "committed":
                self._tell(Committed(time.time(), version))

        with self._warehouse.transaction(step=step) as tx:
            version = tx.version
            self._tell(Began(time.time(), version))
            for change in changes:
                rows = self._change(tx, change)
                self._tell(Changed(time.time(), version, change.meaning, rows))
                self._stop.wait(self._pace.statement)

    def _change(self, tx: MaintenanceTransaction, change: Change) -> int:
        match change:
            case Insert(_, table, rows):
                return tx.insert(table, self._warehouse.spark.createDataFrame(rows)).counts.total
            case Statement(_, sql):
                outcome = tx.sql(sql)
                assert isinstance(outcome, Outcome)
                return outcome.counts.total
            case _:
                assert_never(change)
