"""Maintenance in a loop: one transaction after the other, each several statements on two tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from matview.demo.chain import CITY_TOTALS, DAILY_SALES, Change, first_sales, first_totals, maintenance
from matview.demo.events import Began, Changed, Committed, Event, HalfCommitted
from matview.errors import BadSetting
from matview.maintain.transaction import Outcome
from matview.warehouse import Warehouse

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
        tx.insert("DailySales", warehouse.spark.sql(first_sales(seed)))
        tx.sql(first_totals())
        tx.commit()
        return tx.version


class Maintainer:
    """Runs transactions until `stop` is set; one that has begun is brought to its end."""

    def __init__(
        self, warehouse: Warehouse, seed: int, pace: Pace, tell: Callable[[Event], None], stop: threading.Event
    ) -> None:
        self._warehouse = warehouse
        self._seed = seed
        self._pace = pace
        self._tell = tell
        self._stop = stop

    def work(self) -> None:
        for changes in maintenance(self._seed):
            if self._stop.wait(self._pace.gap):
                return
            self._transact(changes)

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
                outcome = tx.sql(change.sql)
                assert isinstance(outcome, Outcome)
                self._tell(Changed(time.time(), version, change.meaning, outcome.counts.total))
                self._stop.wait(self._pace.statement)
