"""Rounds without end, in a pipeline (M18): while one is installed, the next is captured already.

    capture thread   1 query_transactions, 2 evaluate  ->  the queue in the catalog, at most AHEAD rounds long
    whoever calls    3 install, 4 delete_consumed      <-  oldest first

A source that fails is left out for a while that grows, and the others go on. Where a round of several cannot be
installed, each of its sources has rounds of its own, until one of them goes well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from matview.catalog.source_records import RoundRecord
from matview.errors import MatviewError, TransactionOver
from matview.maintain.backoff import Backoff
from matview.maintain.rounds.place import Place
from matview.maintain.rounds.steps import (
    Bypassed,
    Changes,
    Installed,
    delete_consumed,
    evaluate,
    give_up,
    install,
    note_failure,
    query_transactions,
    waiting,
)

AHEAD = 2
CONTINUOUS = 1.0


@dataclass(frozen=True, slots=True)
class Fed:
    """What became of a round, or of an attempt at one: its sources, and the version or the error."""

    sources: tuple[str, ...]
    seconds: float
    installed: Installed | None = None
    error: MatviewError | None = None
    again_in: float = 0.0


@dataclass
class Feeder:
    """`every`: how often sources are asked, in seconds; as soon as something was found, they are asked again."""

    place: Place
    every: float = CONTINUOUS
    tell: Callable[[Fed], None] = lambda _: None
    backoff: Backoff = field(default_factory=Backoff)
    ready: threading.Event = field(default_factory=threading.Event)
    """Set when a round waits to be installed."""
    failures: int = 0
    """How many attempts have failed."""
    _in_hand: dict[int, Changes] = field(default_factory=dict)
    _apart: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)
    _room: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    # steps 1 and 2 ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="matview-capture", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """A capture that has begun is ended first; what it fixed waits in the queue for whoever comes next."""
        self._stop.set()
        self._room.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            found = self._captured_safely()
            left = self.every - (time.monotonic() - began)
            if not found or self.every > CONTINUOUS:
                self._stop.wait(max(left, 0.0))

    def _captured_safely(self) -> bool:
        try:
            return self.capture()
        except MatviewError as error:  # the catalog's, or the storage's: of all sources, and it passes
            self.tell(Fed((), 0.0, error=error, again_in=self.every))
            return False

    def capture(self) -> bool:
        """A round for each set of sources that may be asked together; whether anything was found."""
        found = False
        for names, most in self._together():
            self._wait_for_room()
            if self._stop.is_set():
                return found
            began = time.monotonic()
            fixed = query_transactions(self.place, names, most)
            for name, error in fixed.failed.items():
                self._failed((name,), error, time.monotonic() - began)
            if fixed.round is not None:
                self._in_hand[fixed.round.number] = fixed.changes
                evaluate(self.place, fixed)
                self.ready.set()
                found = True
        return found

    def _together(self) -> list[tuple[list[str], int | None]]:
        """Sources in strong mode share a round, unless one of them stands in the way; others have their own."""
        active = [source for source in self.place.runtime.catalog.sources.list() if source.state == "active"]
        going = [source for source in active if self.backoff.left(source.name) <= 0]
        shared = [source.name for source in going if source.mode == "strong" and source.name not in self._apart]
        alone = [source for source in going if source.name not in shared]
        sets: list[tuple[list[str], int | None]] = [(shared, None)] if shared else []
        return sets + [([source.name], 1 if source.mode == "complete" else None) for source in alone]

    def _wait_for_room(self) -> None:
        while not self._stop.is_set() and len(waiting(self.place)) >= AHEAD:
            self._room.clear()
            self._room.wait(self.every)

    # steps 3 and 4 ----------------------------------------------------------------------------------------------------

    def install(self, stop: threading.Event | None = None) -> list[Fed]:
        """Every round that waits, then what is left to acknowledge."""
        self.ready.clear()
        done: list[Fed] = []
        while stop is None or not stop.is_set():
            began = time.monotonic()
            try:
                installed = install(self.place, self._in_hand)
            except MatviewError as error:
                return [*done, self._failed((), error, time.monotonic() - began)]
            if installed is None:
                break
            self._in_hand.pop(installed.round.number, None)
            self._room.set()
            done.append(self._noted(installed, time.monotonic() - began))
            self._acknowledge()
        self._acknowledge()
        return done

    def _acknowledge(self) -> None:
        for name, error in delete_consumed(self.place).items():
            self._failed((name,), error, 0.0)

    def _noted(self, installed: Installed, seconds: float) -> Fed:
        names = self._names(installed.round)
        error = installed.error
        if error is None:
            self._apart -= set(names)
            for name in names:
                self.backoff.succeeded(name)
        elif not isinstance(error, TransactionOver):
            give_up(self.place, installed.round.number, error)
            self._in_hand.clear()
            return self._stands_in_the_way(names, error, seconds)
        fed = Fed(names, seconds, installed)
        self.tell(fed)
        return fed

    def _stands_in_the_way(self, names: Sequence[str], error: MatviewError, seconds: float) -> Fed:
        """One source alone is held back; of several it is not known which one it is. A stopped table is out of it."""
        if len(names) == 1 and not isinstance(error, Bypassed):
            for source in self.place.runtime.catalog.sources.list():
                if source.name in names:
                    note_failure(self.place, source, error)
            return self._failed(names, error, seconds)
        if not isinstance(error, Bypassed):
            self._apart |= set(names)
        self.failures += 1
        fed = Fed(tuple(names), seconds, error=error)
        self.tell(fed)
        return fed

    def _names(self, one: RoundRecord) -> tuple[str, ...]:
        known = {source.id: source.name for source in self.place.runtime.catalog.sources.list()}
        return tuple(known[part.source_id] for part in one.parts if part.source_id in known)

    def _failed(self, names: Sequence[str], error: MatviewError, seconds: float) -> Fed:
        self.failures += 1
        again = max((self.backoff.failed(name, error) for name in names), default=self.every)
        fed = Fed(tuple(names), seconds, error=error, again_in=again)
        self.tell(fed)
        return fed
