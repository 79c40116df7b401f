"""A table as one maintenance transaction sees it: what was committed, and what this transaction has staged on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from matview.catalog.records import NewTable
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


@dataclass
class Working:
    """Staged files belong to nobody else until the commit; `replaced` are those that a later statement did without."""

    table: VersionedTable
    snapshot: Snapshot
    first_rid: int
    vn: int
    token: int
    created: NewTable | None = None
    dropped: bool = False
    staged: tuple[DataFile, ...] = ()
    replaced: tuple[DataFile, ...] = ()
    next_rid: int = field(init=False)
    statements: int = 0
    counts: Counts = Counts()
    held: list[DataFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.next_rid = self.first_rid

    @property
    def current(self) -> Snapshot:
        """Committed and staged files together: the state that the transaction itself reads."""
        return self.snapshot.with_files(self.snapshot.files + self.staged)

    @property
    def staged_overlay(self) -> tuple[DataFile, ...]:
        return tuple(f for f in self.staged if f.level is Level.OVERLAY)

    def latest(self, data: Sequence[DataFile] | None = None) -> DataFrame:
        """The newest stored state of every tuple (of the given files), logically deleted ones included."""
        now = self.current
        return self.table.latest(now.files if data is None else data, now.overlay)

    def hold(self, rows: DataFrame) -> DataFrame:
        """Computed once, kept until the statement is done."""
        self.held.append(rows.persist())
        return self.held[-1]

    def let_go(self) -> None:
        while self.held:
            self.held.pop().unpersist()

    def new_directory(self) -> str:
        self.statements += 1
        return f"data/{self.token:010d}-{self.statements}"
