"""An analyst: sum by city, drill down by product line, check that the parts add up to the whole (Example 2.1)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Row

from matview.demo.chain import CITIES, SUM_BY_CITY
from matview.demo.events import Asked, Checked, Closed, Event, Expired, Opened
from matview.demo.readers import Desk, Reader
from matview.errors import BadSetting, SessionExpired

TOTALS = "SELECT city, state, total_sales FROM {CityTotals}"
DRILL_DOWN = (
    "SELECT product_line, sum(total_sales) AS total_sales FROM {DailySales}"
    " WHERE city = '{city}' AND state = '{state}' GROUP BY product_line"
)
Tell = Callable[[Event], None]
City = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Habit:
    """How somebody works: drill-downs in a session, and in every `long_every`-th one; seconds of thought between."""

    name: str
    drills: int = 3
    think: float = 0.6
    long_every: int = 4
    long_drills: int = 15
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.drills, self.long_drills, self.long_every) < 1 or self.think < 0:
            raise BadSetting(f"{self.name} cannot work like that")

    def drills_of(self, session: int) -> int:
        """Sessions count from 0."""
        return self.long_drills if session % self.long_every == self.long_every - 1 else self.drills


class Analyst:
    """Opens one session after the other until `stop` is set; tells what happens."""

    def __init__(self, habit: Habit, reader: Reader, tell: Tell, stop: threading.Event) -> None:
        self._habit = habit
        self._reader = reader
        self._tell = tell
        self._stop = stop
        self._chance = random.Random(habit.seed)

    def rehearse_and_work(self) -> None:
        self.rehearse()
        self.work()

    def rehearse(self) -> None:
        """Asks every kind of query once and tells nobody: Spark is slow at what it does for the first time."""
        desk = self._reader.open()
        with closing(desk), suppress(SessionExpired):
            for query in (SUM_BY_CITY, TOTALS, _about(DRILL_DOWN, CITIES[0])):
                desk.ask(query)

    def work(self) -> None:
        session = 0
        while not self._stop.is_set():
            self._sit(self._habit.drills_of(session))
            session += 1
            self._think()

    def _sit(self, drills: int) -> None:
        before, began = self._reader.waits, time.time()
        desk = self._reader.open()
        now = time.time()
        self._tell(Opened(now, self._habit.name, desk.version, now - began, self._reader.waits - before))
        try:
            self._analyse(desk, drills)
        except SessionExpired:
            self._tell(Expired(time.time(), self._habit.name, self._close(desk)))
        else:
            self._tell(Closed(time.time(), self._habit.name, self._close(desk)))

    def _close(self, desk: Desk) -> int:
        before = self._reader.waits
        desk.close()
        return self._reader.waits - before

    def _analyse(self, desk: Desk, drills: int) -> None:
        """The wholes; of some of them the parts; and in the end CityTotals once more."""
        wholes = by_city(self._ask(desk, SUM_BY_CITY))
        self._check_totals(desk, wholes)
        for _ in range(drills):
            self._think()
            if self._stop.is_set():
                return
            self._check_parts(desk, wholes, self._chance.choice(sorted(wholes)))
        self._check_totals(desk, wholes)

    def _check_parts(self, desk: Desk, wholes: Mapping[City, Decimal], city: City) -> None:
        parts = self._ask(desk, _about(DRILL_DOWN, city))
        self._tell(Checked(time.time(), self._habit.name, "parts", ", ".join(city), wholes[city], added(parts)))

    def _check_totals(self, desk: Desk, wholes: Mapping[City, Decimal]) -> None:
        """All cities against CityTotals: the first one that differs, or else the whole chain."""
        totals, nothing = by_city(self._ask(desk, TOTALS)), Decimal(0)
        different = [c for c in sorted({*wholes, *totals}) if wholes.get(c, nothing) != totals.get(c, nothing)]
        name = ", ".join(different[0]) if different else f"all {len(wholes)} cities"
        chosen = different[:1] or [*wholes]
        whole, other = (sum((m.get(c, nothing) for c in chosen), nothing) for m in (wholes, totals))
        self._tell(Checked(time.time(), self._habit.name, "totals", name, whole, other))

    def _ask(self, desk: Desk, query: str) -> Sequence[Row]:
        before, began = self._reader.waits, time.time()
        rows = desk.ask(query)
        now = time.time()
        self._tell(Asked(now, self._habit.name, now - began, self._reader.waits - before))
        return rows

    def _think(self) -> None:
        self._stop.wait(self._chance.uniform(0.5, 1.5) * self._habit.think)


def by_city(rows: Sequence[Row]) -> dict[City, Decimal]:
    return {(row["city"], row["state"]): row["total_sales"] for row in rows}


def added(rows: Sequence[Row]) -> Decimal:
    return sum((row["total_sales"] for row in rows), Decimal(0))


def _about(query: str, city: City) -> str:
    """The query for one city; the names of the tables are left for the desk to fill in."""
    return query.replace("{city}", city[0]).replace("{state}", city[1])
