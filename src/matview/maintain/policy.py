"""When a maintenance transaction commits (section 2.1 of the paper): at once, at a time, or when no session is open."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from matview.errors import BadSetting

POLL = 0.05


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The default."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """Not before a moment, a `datetime` or seconds since the epoch: readers can know when their sessions may expire."""

    moment: float | datetime

    def __post_init__(self) -> None:
        if not isinstance(self.moment, int | float | datetime):
            raise BadSetting(f"AtTime takes a datetime, or seconds since the epoch, not {self.moment!r}")

    @property
    def seconds(self) -> float:
        return self.moment.timestamp() if isinstance(self.moment, datetime) else self.moment


@dataclass(frozen=True, slots=True)
class WhenIdle:
    """When no reader session is open, so that none expires; but after `patience` seconds at the latest."""

    patience: float = 60.0

    def __post_init__(self) -> None:
        if self.patience < 0:
            raise BadSetting("the patience of WhenIdle must not be negative")


CommitPolicy = AtOnce | AtTime | WhenIdle


def wait_to_commit(policy: CommitPolicy, open_sessions: Callable[[], int], check: Callable[[], None]) -> None:
    """Returns when the policy lets the commit happen; `check` raises if the transaction is lost meanwhile."""
    began = time.monotonic()
    while not _may_commit(policy, open_sessions, time.monotonic() - began):
        check()
        time.sleep(POLL)


def _may_commit(policy: CommitPolicy, open_sessions: Callable[[], int], waited: float) -> bool:
    match policy:
        case AtOnce():
            return True
        case AtTime():
            return time.time() >= policy.seconds
        case WhenIdle(patience):
            return waited >= patience or open_sessions() == 0
