"""What Matview asks of a source. Nothing here blocks its users, and nothing here is coordinated with them.

▵R, ▿R     what a captured table has gained and lost, recorded by triggers, each row labelled with its transaction
TID(old)   the *set* of transactions that a round consumes, never "up to the greatest": `Taken`
R^o        the table after exactly those transactions, whatever has committed since (formula 3)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp

from matview.errors import MatviewError

WEIGHT = "__weight"
"""The column of a captured change that says how often a row came (positive) or went (negative)."""

Taken = Mapping[str, Any]
"""A set of transactions as the engine writes it: plain JSON, kept in the catalog until the round has ended."""

NOTHING: Taken = {}
"""The set without any transaction, of every engine."""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column as the source has it, and the Spark type that carries it exactly."""

    name: str
    source_type: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of a source. `identity` is what drift is noticed by: it differs when the table is another one now."""

    name: str
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...] = ()
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a table cannot be captured, or is no longer: the error that it is for who goes on in spite of it, with the
    statement or step that mends it. Without a table it is of the whole source."""

    error: MatviewError
    table: str | None = None

    @property
    def code(self) -> str:
        return self.error.code

    @property
    def what(self) -> str:
        return self.error.what

    @property
    def help(self) -> str:
        return self.error.help


@dataclass(frozen=True, slots=True)
class Waiting:
    """How far a source is ahead of what was taken from it."""

    rows: int
    transactions: int
    since: datetime | None
    """When the oldest change that waits was made."""
    oldest_open: datetime | None
    """When the oldest transaction began that is still open and may yet commit changes; None where nobody can tell."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What the transactions of one set changed, table by table; tables that did not change are left out."""

    taken: Taken
    transactions: int
    rows: int
    changes: Mapping[str, pa.Table]
    """The columns of the table in their order, in the Arrow types of their Spark types, and WEIGHT; not net."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a table that can be read by itself, and about how many rows it has; 0 if nobody can tell."""

    table: SourceTable
    condition: str
    rows: int


class FirstState(ABC):
    """The tables in one snapshot, read beside writers; every change after it is captured, none before it twice."""

    taken: Taken
    """What had been captured when the snapshot was taken: it is in the tables already."""

    @abstractmethod
    def slices(self, table: SourceTable, rows: int) -> Sequence[Slice]:
        """The table in slices of about that many rows; several may be read at once."""

    @abstractmethod
    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """Never the whole slice in memory."""


class Source(ABC):
    """A connection to one source. Made by `matview.sources.connect(url)`; safe to use from several threads."""

    tells_transactions: ClassVar[bool]
    """Whether `capture` can take them one at a time."""

    # configuration phase

    @abstractmethod
    def describe(self, names: Sequence[str]) -> list[SourceTable]:
        """The tables as they are now; raises for one that is not there or has a type that cannot be carried."""

    @abstractmethod
    def tables(self) -> list[str]:
        """The tables that could be captured, as `describe` takes their names."""

    @abstractmethod
    def check(self, tables: Sequence[SourceTable], *, installed: bool) -> list[Problem]:
        """Before capture is installed: what stands against it. After: what has drifted or was bypassed."""

    @abstractmethod
    def install(self, tables: Sequence[SourceTable]) -> None:
        """Delta tables and triggers, all or none; harmless where they are already. Waits for no long transaction
        with a lock held: it tries again and again, each time for some milliseconds."""

    @abstractmethod
    def remove(self, tables: Sequence[SourceTable]) -> None:
        """Capture of these tables ends; with the last of them nothing of Matview's is left at the source."""

    @abstractmethod
    def first_state(self, tables: Sequence[SourceTable]) -> AbstractContextManager[FirstState]:
        """After `install`; the snapshot is held until the block ends."""

    # maintenance phase

    @abstractmethod
    def capture(
        self, tables: Sequence[SourceTable], *, most: int | None = None, besides: Sequence[Taken] = ()
    ) -> Captured:
        """Step 1: the set of committed transactions, fixed in one snapshot, and their changes from the same one.

        `most` takes no more than that many, in the order in which they could have committed (complete consistency).
        The sets of `besides` are left out, and have nothing in common with the one that is given back: their rounds
        are still being installed, and their delta rows may be there yet (rounds in a pipeline).
        Nothing at the source changes but an epoch where the engine needs one.
        """

    @abstractmethod
    def changes(self, tables: Sequence[SourceTable], taken: Taken) -> Captured:
        """The changes of a set that was fixed before: after a crash, the same again."""

    @abstractmethod
    def acknowledge(self, tables: Sequence[SourceTable], taken: Taken) -> None:
        """Step 4: deletes the delta rows of the set; repeating it is harmless."""

    @abstractmethod
    def evaluate(
        self,
        query: exp.Query,
        tables: Sequence[SourceTable],
        taken: Taken,
        shipped: Mapping[str, pa.Table],
        besides: Sequence[Taken] = (),
    ) -> Iterator[pa.RecordBatch]:
        """A subquery at the source, atomically. A table's name means R^o; `Δ` before it the signed changes of the set
        with WEIGHT; names in `shipped` are relations sent along, in batches.

        The sets of `besides` are installed and perhaps not acknowledged yet: R^o has them, the changes do not. With
        NOTHING taken, R^o is the state after them: what the warehouse has taken over so far.
        """

    @abstractmethod
    def waiting(self, tables: Sequence[SourceTable]) -> Waiting: ...

    @abstractmethod
    def close(self) -> None: ...
