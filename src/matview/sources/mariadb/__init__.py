"""MariaDB as a source: triggers for each table; the delta rows that one snapshot shows are a set of transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from matview.sources.engine import Captured, FirstState, Problem, Source, SourceTable, Taken, Waiting
from matview.sources.mariadb import capture, first, install, remote
from matview.sources.mariadb.connect import Database, check_version
from matview.sources.mariadb.layout import layout, table_names
from matview.sources.urls import SourceUrl


class MariadbSource(Source):
    """A database of a MariaDB server."""

    dialect: ClassVar[str] = "mysql"

    def __init__(self, address: SourceUrl) -> None:
        self.database = Database(address)
        with self.database.connected() as connection:
            check_version(connection)

    def __repr__(self) -> str:
        return f"MariadbSource({self.database.address.stored!r})"

    def describe(self, names: Sequence[str]) -> list[SourceTable]:
        with self.database.connected() as connection:
            return [layout(connection, self.database.name, name).table for name in names]

    def tables(self) -> list[str]:
        with self.database.connected() as connection:
            return table_names(connection)

    def check(self, tables: Sequence[SourceTable], *, installed: bool) -> list[Problem]:
        if not installed:
            return install.problems(install.obstacles(self.database, tables))
        with self.database.connected() as connection:
            return install.problems(install.drift(connection, self.database, tables))

    def install(self, tables: Sequence[SourceTable]) -> None:
        install.install(self.database, tables)

    def remove(self, tables: Sequence[SourceTable]) -> None:
        install.remove(self.database, tables)

    def first_state(self, tables: Sequence[SourceTable]) -> AbstractContextManager[FirstState]:
        return first.first_state(self.database, tables)

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
