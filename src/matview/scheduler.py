"""Refreshes viewgroups when they are due, for as long as it is let: `matview run`.

A round refreshes every group whose time has come, each in a transaction of its own, parents before children. However
many times were missed, a group is refreshed once. A group that fails does not keep others back: it is tried again
after a pause that grows, short for what passes by itself (a lease held by another, a catalog that does not answer) and
long for what does not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from matview.errors import (
    CatalogUnavailable,
    LeaseLost,
    MaintenanceBusy,
    MatviewError,
    SparkFailure,
    StorageFailure,
)
from matview.groups.graph import BASE
from matview.maintain.outcome import Outcome
from matview.reading.groups import GroupStatus
from matview.warehouse import Warehouse

TRANSIENT = (MaintenanceBusy, CatalogUnavailable, LeaseLost, StorageFailure, SparkFailure)
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
class _Failing:
    times: int = 0
    until: float = 0.0


@dataclass
class Scheduler:
    """`tell` hears of every attempt; `clock` counts seconds, for pauses."""

    warehouse: Warehouse
    tell: Callable[[Tried], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    _failing: dict[str, _Failing] = field(default_factory=dict)

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set; a refresh that has begun is ended first."""
        while not stop.is_set():
            self.round(stop)
            stop.wait(self.pause())

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
        ready = [group for group in due if self._held_back(group.name) <= 0]
        by_name = {group.name: group for group in groups}
        return [group.name for group in sorted(ready, key=lambda group: (_depth(group, by_name), group.name))]

    def pause(self) -> float:
        """Until the next group is due, or may be tried again."""
        now = self.warehouse.catalog.now()
        times = [(group, group.due_at) for group in self.warehouse.viewgroups()]
        waits = [max(at - now, self._held_back(group.name), 0.0) for group, at in times if at is not None]
        return min([*waits, LONGEST_PAUSE])

    def _refresh(self, group: str) -> Tried:
        began = time.perf_counter()
        try:
            outcome = self.warehouse.refresh(group)
        except MatviewError as error:
            return Tried(group, None, time.perf_counter() - began, error, self._hold_back(group, error))
        self._failing.pop(group, None)
        return Tried(group, outcome, time.perf_counter() - began)

    def _held_back(self, group: str) -> float:
        failing = self._failing.get(group)
        return 0.0 if failing is None else failing.until - self.clock()

    def _hold_back(self, group: str, error: MatviewError) -> float:
        """1, 2, 4, .. 60 seconds for what passes by itself; otherwise 1, 2, 4, .. 60 minutes."""
        failing = self._failing.setdefault(group, _Failing())
        unit = 1.0 if isinstance(error, TRANSIENT) else 60.0
        length = unit * min(2.0**failing.times, 60.0)
        failing.times += 1
        failing.until = self.clock() + length
        return length


def _depth(group: GroupStatus, by_name: dict[str, GroupStatus]) -> int:
    above = group.derived_from
    return 0 if above is None or above == BASE else 1 + _depth(by_name[above], by_name)
