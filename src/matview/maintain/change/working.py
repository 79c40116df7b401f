"""A table as one maintenance transaction sees it: what was committed, and what this transaction has staged on top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from matview.catalog.records import LogEntry, LoggedFile, NewTable, ViewRecord
from matview.maintain.change.held import Held
from matview.remembered import cached_property
from matview.storage.snapshot import DataFile, Level, Snapshot
from matview.storage.table import VersionedTable


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tuples a statement, or several, inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.inserted + other.inserted, self.updated + other.updated, self.deleted + other.deleted)

    @property
    def total(self) -> int:
        return self.inserted + self.updated + self.deleted


_KEPT = ("view", "renewed", "dropped", "logged", "touched", "staged", "replaced", "counts")


@dataclass
class Working:
    """Staged files belong to nobody else until the commit; `replaced` are those that a later statement did without."""

    table: VersionedTable
    first_rid: int
    vn: int
    token: int
    created: NewTable | None = None
    view: ViewRecord | None = None
    """What the table holds, if it is a view."""
    source: str | None = None
    """The source that feeds the table, if one does: nobody else changes it."""
    renewed: bool = False
    """It stays at its source, and what has changed there since it was last looked at is not known."""
    dropped: bool = False
    logged: bool = False
    """Some view reads the table, so its changes have to be told."""
    touched: frozenset[str] = frozenset()
    """The columns whose values updates of this transaction changed."""
    staged: tuple[DataFile, ...] = ()
    replaced: tuple[DataFile, ...] = ()
    next_rid: int = field(init=False)
    statements: int = 0
    counts: Counts = Counts()
    held: Held = field(default_factory=Held)

    def __post_init__(self) -> None:
        self.next_rid = self.first_rid

    @cached_property
    def snapshot(self) -> Snapshot:
        """What was committed, read when it is first asked for: a table that cannot be read can still be dropped."""
        return self.table.log.load()

    @property
    def current(self) -> Snapshot:
        """Committed and staged files together: the state that the transaction itself reads."""
        return self.snapshot.with_files(self.snapshot.files + self.staged)

    @property
    def is_changed(self) -> bool:
        """A statement of this transaction has changed it, perhaps back into what it was before."""
        return bool(self.staged) or self.statements > 0

    @property
    def staged_overlay(self) -> tuple[DataFile, ...]:
        return tuple(f for f in self.staged if f.level is Level.OVERLAY)

    def latest(self, data: Sequence[DataFile] | None = None, skipping: str = "TRUE") -> DataFrame:
        """The newest stored state of every tuple (of the given files), logically deleted ones included, as long as it
        meets `skipping`, a condition that never fails."""
        now = self.current
        return self.table.asked(now.files if data is None else data, now.overlay, skipping)

    def log_entry(self) -> LogEntry:
        """How this transaction changed the table."""
        files = tuple(LoggedFile(f.path, f.level.value, f.rows, f.size) for f in self.staged)
        counts = self.counts
        return LogEntry(self.table.id, self.vn, counts.inserted, counts.updated, counts.deleted, self.touched, files)

    def saved(self) -> Callable[[], None]:
        """Puts all back as it is now, but for what must never come again: identities and directories. Files that were
        staged meanwhile are nobody's any more."""
        kept = {name: getattr(self, name) for name in _KEPT}

        def restore() -> None:
            written = (*self.staged, *self.replaced)
            for name, value in kept.items():
                setattr(self, name, value)
            known = {f.path for f in (*self.staged, *self.replaced)}
            self.replaced += tuple(f for f in written if f.path not in known)

        return restore

    def new_directory(self) -> str:
        self.statements += 1
        return f"data/{self.token:010d}-{self.statements}"
