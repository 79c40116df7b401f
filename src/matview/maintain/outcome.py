"""What a change did, for whoever asked for it."""

from __future__ import annotations

from dataclasses import dataclass

from matview.maintain.change.working import Counts


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a change did: how many rows, and the version that shows it (None inside an open transaction).

    `done` says what was made, dropped or altered, if anything was.
    """

    counts: Counts
    version: int | None = None
    done: str = ""

    def __str__(self) -> str:
        parts = [f"{n} {what}" for n, what in self._parts if n]
        shown = ", ".join([self.done] * bool(self.done) + parts) or "nothing changed"
        return shown if self.version is None else f"{shown} (version {self.version})"

    @property
    def _parts(self) -> list[tuple[int, str]]:
        counts = self.counts
        return [(counts.inserted, "inserted"), (counts.updated, "updated"), (counts.deleted, "deleted")]
