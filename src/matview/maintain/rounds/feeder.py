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
    Changes,
    Installed,
    delete_consumed,
    evaluate,
    give_up,
    install,
    names_table,
    note_failure,
    query_transactions,
    waiting,
)

AHEAD = 2
CONTINUOUS = 1.0
QUEUE = ""
"""What is held back when rounds could not be installed for a reason that is no source's."""


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
    _ended: Exception | None = None

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

    @property
    def calls(self) -> bool:
        """A round waits to be installed, or no other will come."""
        return self.ready.is_set() or self._ended is not None

    def check(self) -> None:
        """Raises what the capture thread has ended of, if it has."""
        if self._ended is not None:
            raise self._ended

    def _run(self) -> None:
        try:
            self._capture_on()
        except Exception as error:  # whatever it is: whoever installs raises it
            self._ended = error
            self.ready.set()

    def _capture_on(self) -> None:
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
        """A round for each set of sources that may be asked together, as there is room; whether anything was found.

        Somebody else has to install meanwhile.
        """
        found = False
        for names, most in self._together():
            self._wait_for_room()
            if self._stop.is_set():
                return found
            found = self._capture(names, most) or found
        return found

    def once(self) -> None:
        """What was left, then a round for each set of sources, each of them installed before the next is captured."""
        self.install()
        for names, most in self._together():
            if self._capture(names, most):
                self.install()

    def _capture(self, names: Sequence[str], most: int | None) -> bool:
        """Steps 1 and 2 of one round; whether there was anything to take."""
        began = time.monotonic()
        fixed = query_transactions(self.place, names, most)
        for name, error in fixed.failed.items():
            self._failed((name,), error, time.monotonic() - began)
        if fixed.round is None:
            return False
        self._let_go()
        self._in_hand[fixed.round.number] = fixed.changes
        evaluate(self.place, fixed)
        self.ready.set()
        return True

    def _let_go(self) -> None:
        """Changes in hand are kept for rounds that wait: others may have installed them, or thrown them away."""
        known = list(self._in_hand)
        still = {one.number for one in waiting(self.place)}
        for number in known:
            if number not in still:
                self._in_hand.pop(number, None)

    def _together(self) -> list[tuple[list[str], int | None]]:
        """Sources in strong mode share a round, unless one of them stands in the way; others have their own."""
        active = [source for source in self.place.runtime.catalog.sources.list() if source.state == "active"]
        going = [source for source in active if self.backoff.left(source.name) <= 0]
        shared = [source.name for source in going if source.mode == "strong" and source.name not in self._apart]
        alone = [source for source in going if source.name not in shared]
        sets: list[tuple[list[str], int | None]] = [(shared, None)] if shared else []
        return sets + [([source.name], 1 if source.mode == "complete" else None) for source in alone]

    def _wait_for_room(self) -> None:
        while True:
            self._room.clear()  # before the look: whoever makes room after it is heard
            if self._stop.is_set() or len(waiting(self.place)) < AHEAD:
                return
            self._room.wait(self.every)

    # steps 3 and 4 ----------------------------------------------------------------------------------------------------

    def install(self, stop: threading.Event | None = None) -> list[Fed]:
        """Every round that waits, then what is left to acknowledge. What fails is tried again (`again_in`)."""
        self.ready.clear()
        done: list[Fed] = []
        while stop is None or not stop.is_set():
            began = time.monotonic()
            try:
                installed = install(self.place, self._in_hand)
            except MatviewError as error:
                return [*done, self._failed((QUEUE,), error, time.monotonic() - began)]
            self.backoff.succeeded(QUEUE)
            if installed is None:
                break
            self._in_hand.pop(installed.round.number, None)
            self._room.set()
            done.append(self._noted(installed, time.monotonic() - began))
            self._acknowledge()
        if not done:
            self._acknowledge()
        return done

    def again_in(self) -> float | None:
        """When rounds should be installed whether or not another one comes; None if none had to be left."""
        return self.backoff.left(QUEUE) if QUEUE in self.backoff else None

    def _acknowledge(self) -> None:
        """A source that failed a moment ago is left out: to wait for it would keep all others back."""
        sources = self.place.runtime.catalog.sources.list()
        skip = [source.name for source in sources if self.backoff.left(source.name) > 0]
        for name, error in delete_consumed(self.place, skip).items():
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
            self._let_go()
            return self._stands_in_the_way(names, error, seconds)
        fed = Fed(names, seconds, installed)
        self.tell(fed)
        return fed

    def _stands_in_the_way(self, names: Sequence[str], error: MatviewError, seconds: float) -> Fed:
        """One source alone is held back; of several it is not known which one it is. A stopped table is out of it."""
        if len(names) == 1 and not names_table(error):
            for source in self.place.runtime.catalog.sources.list():
                if source.name in names:
                    note_failure(self.place, source, error)
            return self._failed(names, error, seconds)
        if not names_table(error):
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
        again = max(self.backoff.failed(name, error) for name in names)
        fed = Fed(tuple(name for name in names if name != QUEUE), seconds, error=error, again_in=again)
        self.tell(fed)
        return fed
