"""Takes over what sources have, and refreshes viewgroups when they are due, for as long as it is let: `matview run`.

Rounds of sources are captured by a thread of their own, and installed here, before the groups that are due. A round of
groups refreshes every group whose time has come, each in a transaction of its own, parents before children. However
many times were missed, a group is refreshed once. A group that fails does not keep others back: it is tried again
after a pause that grows, short for what passes by itself (a lease held by another, a catalog that does not answer) and
long for what does not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from matview.errors import MatviewError
from matview.groups.graph import BASE
from matview.maintain.backoff import TRANSIENT, Backoff
from matview.maintain.outcome import Outcome
from matview.maintain.rounds.feeder import CONTINUOUS, Fed, Feeder
from matview.reading.groups import GroupStatus
from matview.warehouse import Warehouse

GLANCE = 0.05
"""How soon a round that waits is noticed."""
ALL = ""
"""Stands for all viewgroups, where it cannot be told which are due."""
LONGEST_PAUSE = 30.0
"""How long the scheduler sleeps at most: schedules may be altered meanwhile."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt at one viewgroup: what came of it, how long it took, and when a failed one is tried again."""

    group: str
    outcome: Outcome | None
    seconds: float
    error: MatviewError | None = None
    again_in: float = 0.0


@dataclass
class Scheduler:
    """`tell` hears of every attempt at a group, `tell_fed` of every round; `clock` counts seconds, for pauses."""

    warehouse: Warehouse
    tell: Callable[[Tried], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    ingest_every: float = CONTINUOUS
    tell_fed: Callable[[Fed], None] = lambda _: None
    _backoff: Backoff = field(init=False)
    feeder: Feeder = field(init=False)

    def __post_init__(self) -> None:
        self._backoff = Backoff(self.clock)
        self.feeder = Feeder(self.warehouse.place(), self.ingest_every, self.tell_fed, Backoff(self.clock))

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set; a refresh or a round that has begun is ended first."""
        self.feeder.start()
        try:
            while not stop.is_set():
                self._wait(stop, self._served(stop))
        finally:
            self.feeder.stop()

    def _served(self, stop: threading.Event) -> float:
        """What there is to do is done; for how long there will be nothing. What passes by itself ends no run."""
        self.feeder.check()
        try:
            self.feeder.install(stop)
            self.round(stop)
            pause = self.pause()
        except TRANSIENT as error:
            again = self._backoff.failed(ALL, error)
            self.tell(Tried(ALL, None, 0.0, error, again))
            return again
        self._backoff.succeeded(ALL)
        return pause

    def once(self) -> bool:
        """What was left, one round over all sources, then every group that is due; whether all went well."""
        before = self.feeder.failures
        self.feeder.once()
        return self.feeder.failures == before and not any(one.error for one in self.round())

    def _wait(self, stop: threading.Event, seconds: float) -> None:
        """Until then, or until a round waits, or it is over."""
        until = time.monotonic() + seconds
        while not self.feeder.calls and (left := until - time.monotonic()) > 0:
            if stop.wait(min(left, GLANCE)):
                return

    def round(self, stop: threading.Event | None = None) -> list[Tried]:
        """Every group that is due, once."""
        tried = []
        for group in self.due():
            if stop is not None and stop.is_set():
                break
            tried.append(self._refresh(group))
            self.tell(tried[-1])
        return tried

    def due(self) -> list[str]:
        """The groups whose time has come, parents before children, without those that failed a moment ago."""
        groups, now = self.warehouse.viewgroups(), self.warehouse.catalog.now()
        due = [group for group in groups if group.due_at is not None and group.due_at <= now]
        ready = [group for group in due if self._backoff.left(group.name) <= 0]
        by_name = {group.name: group for group in groups}
        return [group.name for group in sorted(ready, key=lambda group: (_depth(group, by_name), group.name))]

    def pause(self) -> float:
        """Until the next group is due, or may be tried again, or rounds that had to wait may."""
        now = self.warehouse.catalog.now()
        times = [(group, group.due_at) for group in self.warehouse.viewgroups()]
        waits = [max(at - now, self._backoff.left(group.name), 0.0) for group, at in times if at is not None]
        rounds = self.feeder.again_in()
        return min([*waits, LONGEST_PAUSE if rounds is None else max(rounds, 0.0), LONGEST_PAUSE])

    def _refresh(self, group: str) -> Tried:
        began = time.perf_counter()
        try:
            outcome = self.warehouse.refresh(group)
        except MatviewError as error:
            return Tried(group, None, time.perf_counter() - began, error, self._backoff.failed(group, error))
        self._backoff.succeeded(group)
        return Tried(group, outcome, time.perf_counter() - began)


def _depth(group: GroupStatus, by_name: dict[str, GroupStatus]) -> int:
    above = group.derived_from
    return 0 if above is None or above == BASE else 1 + _depth(by_name[above], by_name)
