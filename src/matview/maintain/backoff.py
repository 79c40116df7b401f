"""What fails is tried again after a pause that grows: short for what passes by itself, long for what does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from matview.errors import (
    CatalogUnavailable,
    LeaseLost,
    MaintenanceBusy,
    MatviewError,
    SourceUnreachable,
    SparkFailure,
    StorageFailure,
)

TRANSIENT = (MaintenanceBusy, CatalogUnavailable, LeaseLost, StorageFailure, SparkFailure, SourceUnreachable)


@dataclass
class _Failing:
    times: int = 0
    until: float = 0.0


@dataclass
class Backoff:
    """By name; `clock` counts seconds."""

    clock: Callable[[], float] = time.monotonic
    _failing: dict[str, _Failing] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        """It has failed, and not gone well since."""
        return name in self._failing

    def left(self, name: str) -> float:
        """For how long it is still held back; not at all if that is not positive."""
        failing = self._failing.get(name)
        return 0.0 if failing is None else failing.until - self.clock()

    def failed(self, name: str, error: MatviewError) -> float:
        """1, 2, 4, .. 60 seconds for what passes by itself; otherwise 1, 2, 4, .. 60 minutes."""
        failing = self._failing.setdefault(name, _Failing())
        unit = 1.0 if isinstance(error, TRANSIENT) else 60.0
        length = unit * min(2.0**failing.times, 60.0)
        failing.times += 1
        failing.until = self.clock() + length
        return length

    def succeeded(self, name: str) -> None:
        self._failing.pop(name, None)
