"""The changes of a table that a view has yet to take over."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from matview.catalog.records import LogEntry
from matview.plan.cost import TableFacts
from matview.storage.snapshot import DataFile, Level


@dataclass(frozen=True)
class Pending:
    """How a table changed since a view last looked, version by version."""

    entries: tuple[LogEntry, ...]

    @property
    def files(self) -> tuple[DataFile, ...]:
        logged = (f for entry in self.entries for f in entry.files)
        return tuple(DataFile(f.path, Level(f.level), f.size, f.rows, {}, {}) for f in logged)

    @property
    def rows(self) -> int:
        return sum(f.rows for entry in self.entries for f in entry.files)

    @property
    def only_inserts(self) -> bool:
        return not any(e.updated or e.deleted for e in self.entries)

    @property
    def updated(self) -> frozenset[str]:
        """The columns that updates touched."""
        return frozenset[str]().union(*(e.columns for e in self.entries))

    def beside(self, facts: TableFacts) -> TableFacts:
        """What is known about the table, and how it changed."""
        return replace(facts, changed=self.rows, only_inserts=self.only_inserts, updated=self.updated)

    def matters(self, columns: Collection[str] | None) -> bool:
        """Rows came or went, or a column was updated that is read; None: nobody knows which are."""
        if columns is None:
            return bool(self.entries)
        return any(e.inserted or e.deleted or e.columns & set(columns) for e in self.entries)


def pending(entries: Iterable[LogEntry]) -> Pending:
    return Pending(tuple(entries))
