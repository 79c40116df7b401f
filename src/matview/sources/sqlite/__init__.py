"""SQLite as a source: triggers for each table, numbers instead of transactions, and no reader in a writer's way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from matview.sources.engine import Captured, FirstState, Problem, Source, SourceTable, Taken, Waiting
from matview.sources.sqlite import capture, install, remote
from matview.sources.sqlite.connect import Database
from matview.sources.sqlite.first import SqliteFirstState
from matview.sources.sqlite.layout import layout, table_names
from matview.sources.urls import SourceUrl


class SqliteSource(Source):
    """A SQLite file."""

    dialect: ClassVar[str] = "sqlite"

    def __init__(self, address: SourceUrl) -> None:
        self.database = Database(address)
        with self.database.reading():
            pass

    def __repr__(self) -> str:
        return f"SqliteSource({self.database.address.stored!r})"

    def describe(self, names: Sequence[str]) -> list[SourceTable]:
        with self.database.reading() as connection:
            return [layout(connection, name).table for name in names]

    def tables(self) -> list[str]:
        with self.database.reading() as connection:
            return table_names(connection, self.database.prefix)

    def check(self, tables: Sequence[SourceTable], *, installed: bool) -> list[Problem]:
        if not installed:
            return install.problems(install.obstacles(self.database, tables))
        with self.database.reading() as connection:
            return install.problems(install.drift(self.database, connection, tables))

    def install(self, tables: Sequence[SourceTable]) -> None:
        install.install(self.database, tables)

    def remove(self, tables: Sequence[SourceTable]) -> None:
        install.remove(self.database, tables)

    @contextmanager
    def first_state(self, tables: Sequence[SourceTable]) -> Iterator[FirstState]:
        yield SqliteFirstState(self.database, tables)

    def capture(
        self, tables: Sequence[SourceTable], *, most: int | None = None, besides: Sequence[Taken] = ()
    ) -> Captured:
        return capture.capture(self.database, tables, most, besides)

    def changes(self, tables: Sequence[SourceTable], taken: Taken) -> Captured:
        return capture.changes(self.database, tables, taken)

    def acknowledge(self, tables: Sequence[SourceTable], taken: Taken) -> None:
        capture.acknowledge(self.database, tables, taken)

    def evaluate(
        self, query: exp.Query, tables: Sequence[SourceTable], taken: Taken, shipped: Mapping[str, pa.Table]
    ) -> Iterator[pa.RecordBatch]:
        return remote.evaluate(self.database, query, tables, taken, shipped)

    def waiting(self, tables: Sequence[SourceTable]) -> Waiting:
        return capture.waiting(self.database, tables)

    def close(self) -> None:
        """Every task has closed its own connection."""
