"""What the events add up to: stretches of time for the time line, figures for the closing table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from matview.demo.events import (
    Asked,
    Began,
    Changed,
    Checked,
    Closed,
    Committed,
    Event,
    Expired,
    Failed,
    HalfCommitted,
    Opened,
    Started,
)

Phase = Literal["future", "current", "previous"]
Step = Began | Changed | HalfCommitted


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `begin` to `end`, or still going on."""

    begin: float
    end: float | None = None

    def covers(self, begin: float, end: float) -> bool:
        return self.begin <= begin and (self.end is None or end <= self.end)


@dataclass(frozen=True, slots=True)
class Sitting:
    """One reader session: when, at which version, how it ended, and when its answers contradicted one another."""

    analyst: str
    version: int | None
    time: Stretch
    expired: bool = False
    contradictions: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionLife:
    """Figure 2: a version is made, current, previous, and then it has expired."""

    version: int
    phases: tuple[tuple[Phase, Stretch], ...]

    @property
    def expired(self) -> bool:
        return self.phases[-1][1].end is not None


@dataclass(frozen=True, slots=True)
class Figures:
    """`waits`: how often a query met somebody else's lock. `latches`: the same for opening and closing a session, which
    write a row of the catalog. `beside`: queries asked and answered while one maintenance transaction was running."""

    transactions: int
    rows: int
    sessions: int
    expired: int
    queries: int
    beside: int
    median: float
    ninety_fifth: float
    waits: int
    latches: int
    longest_opening: float
    checks: int
    inconsistencies: int
    failures: tuple[str, ...]


@dataclass
class _Teller:
    """Gathers while the events go by."""

    started: Started | None = None
    begun: dict[int, float] = field(default_factory=dict)
    committed: dict[int, float] = field(default_factory=dict)
    rows: int = 0
    last_step: Step | None = None
    sittings: list[Sitting] = field(default_factory=list)
    open: dict[str, Sitting] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    checks: list[Checked] = field(default_factory=list)
    latches: int = 0
    longest_opening: float = 0.0
    failures: list[str] = field(default_factory=list)

    def hear(self, event: Event) -> None:
        match event:
            case Started() | Began() | Changed() | HalfCommitted() | Committed():
                self._hear_maintenance(event)
            case Opened() | Asked() | Checked() | Expired() | Closed():
                self._hear_reading(event)
            case Failed():
                self.failures.append(f"{event.who}: {event.error}")
            case _:
                assert_never(event)

    def _hear_maintenance(self, event: Started | Began | Changed | HalfCommitted | Committed) -> None:
        match event:
            case Started():
                self.started = event
                self.committed[event.version] = event.at
            case Began(at, version):
                self.begun[version] = at
                self.last_step = event
            case Changed():
                self.rows += event.rows
                self.last_step = event
            case HalfCommitted():
                self.last_step = event
            case Committed(at, version):
                self.committed[version] = at
                self.last_step = None
            case _:
                assert_never(event)

    def _hear_reading(self, event: Opened | Asked | Checked | Expired | Closed) -> None:
        match event:
            case Opened(at, analyst, version, seconds, latches):
                self.latches += latches
                self.longest_opening = max(self.longest_opening, seconds)
                self.open[analyst] = Sitting(analyst, version, Stretch(at))
            case Asked():
                self.asked.append(event)
            case Checked():
                self._check(event)
            case Expired() | Closed():
                self._end(event)
            case _:
                assert_never(event)

    def _check(self, event: Checked) -> None:
        self.checks.append(event)
        sitting = self.open.get(event.analyst)
        if sitting is not None and not event.agrees:
            marks = (*sitting.contradictions, event.at)
            self.open[event.analyst] = Sitting(sitting.analyst, sitting.version, sitting.time, False, marks)

    def _end(self, event: Expired | Closed) -> None:
        self.latches += event.latches
        sitting = self.open.pop(event.analyst, None)
        if sitting is not None:
            time, expired = Stretch(sitting.time.begin, event.at), isinstance(event, Expired)
            self.sittings.append(Sitting(sitting.analyst, sitting.version, time, expired, sitting.contradictions))


@dataclass(frozen=True, slots=True)
class Story:
    """All that the drawing and the table need to know; `last_step` is that of the transaction that is running."""

    began: float
    versions: int
    transactions: tuple[tuple[int, Stretch], ...]
    lives: tuple[VersionLife, ...]
    sittings: tuple[Sitting, ...]
    figures: Figures
    last_step: Step | None
    last_check: Checked | None

    @property
    def current(self) -> int:
        """The newest version that readers can open."""
        return max((life.version for life in self.lives if life.phases[-1][0] != "future"), default=0)


def tell(events: Iterable[Event]) -> Story:
    """The story so far; events of different processes may come a little out of order."""
    teller = _Teller()
    for event in sorted(events, key=lambda e: e.at):
        teller.hear(event)
    started = teller.started or Started(0.0, 0, 2)
    transactions = tuple((vn, Stretch(at, teller.committed.get(vn))) for vn, at in sorted(teller.begun.items()))
    sittings = sorted((*teller.sittings, *teller.open.values()), key=lambda s: s.time.begin)
    return Story(
        started.at,
        started.versions,
        transactions,
        _lives(teller.begun, teller.committed, started.versions),
        tuple(sittings),
        _figures(teller, transactions, sittings),
        teller.last_step,
        teller.checks[-1] if teller.checks else None,
    )


def _lives(begun: dict[int, float], committed: dict[int, float], versions: int) -> tuple[VersionLife, ...]:
    return tuple(_life(vn, begun, committed, versions) for vn in sorted({*begun, *committed}))


def _life(vn: int, begun: dict[int, float], committed: dict[int, float], versions: int) -> VersionLife:
    """Current until the next version is committed; expired when the n-th one after it is."""
    phases: list[tuple[Phase, Stretch]] = []
    if vn in begun:
        phases.append(("future", Stretch(begun[vn], committed.get(vn))))
    if vn in committed:
        phases.append(("current", Stretch(committed[vn], committed.get(vn + 1))))
    if vn + 1 in committed:
        phases.append(("previous", Stretch(committed[vn + 1], committed.get(vn + versions))))
    return VersionLife(vn, tuple(phases))


def _figures(teller: _Teller, transactions: Sequence[tuple[int, Stretch]], sittings: Sequence[Sitting]) -> Figures:
    seconds = sorted(asked.seconds for asked in teller.asked)
    return Figures(
        transactions=sum(time.end is not None for _, time in transactions),
        rows=teller.rows,
        sessions=len(sittings),
        expired=sum(s.expired for s in sittings),
        queries=len(seconds),
        beside=sum(any(t.covers(a.at - a.seconds, a.at) for _, t in transactions) for a in teller.asked),
        median=quantile(seconds, 0.5),
        ninety_fifth=quantile(seconds, 0.95),
        waits=sum(a.waits for a in teller.asked),
        latches=teller.latches,
        longest_opening=teller.longest_opening,
        checks=len(teller.checks),
        inconsistencies=sum(not c.agrees for c in teller.checks),
        failures=tuple(teller.failures),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The least value that is not exceeded by `share` of them; 0 without any."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
