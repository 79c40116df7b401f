"""PostgreSQL as a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from matview.sources.engine import Captured, FirstState, Problem, Source, SourceTable, Taken, Waiting
from matview.sources.postgres import capture, describe, install, remote, snapshot
from matview.sources.postgres.connect import Connections
from matview.sources.postgres.patience import Patience
from matview.sources.postgres.sets import Transactions
from matview.sources.urls import SourceUrl


class PostgresSource(Source):
    """`matview.sources.connect("postgresql://...")`. A URL's option `matview_schema` names another schema for capture,
    so that several warehouses may capture the same tables."""

    tells_transactions: ClassVar[bool] = True

    def __init__(self, address: SourceUrl, patience: Patience | None = None) -> None:
        self.patience = patience or Patience()
        self._connections = Connections(address)

    def __repr__(self) -> str:
        return f"PostgresSource({str(self._connections.address)!r})"

    def describe(self, names: Sequence[str]) -> list[SourceTable]:
        with self._connections.borrow() as connection:
            return [describe.describe(connection, self._connections.path, name).table for name in names]

    def tables(self) -> list[str]:
        with self._connections.borrow() as connection:
            return describe.tables(connection, self._connections.path)

    def check(self, tables: Sequence[SourceTable], *, installed: bool) -> list[Problem]:
        look = capture.check_after if installed else install.check_before
        with self._connections.transaction(capture.SNAPSHOT) as connection:
            return look(connection, self._connections.schema, tables)

    def install(self, tables: Sequence[SourceTable]) -> None:
        install.install(self._connections, self.patience, tables)

    def remove(self, tables: Sequence[SourceTable]) -> None:
        install.remove(self._connections, self.patience, tables)

    def first_state(self, tables: Sequence[SourceTable]) -> AbstractContextManager[FirstState]:
        return snapshot.first_state(self._connections, tables)

    def capture(
        self, tables: Sequence[SourceTable], *, most: int | None = None, besides: Sequence[Taken] = ()
    ) -> Captured:
        return capture.capture(self._connections, tables, most, [Transactions.from_taken(one) for one in besides])

    def changes(self, tables: Sequence[SourceTable], taken: Taken) -> Captured:
        return capture.changes(self._connections, tables, Transactions.from_taken(taken))

    def acknowledge(self, tables: Sequence[SourceTable], taken: Taken) -> None:
        capture.acknowledge(self._connections, tables, Transactions.from_taken(taken))

    def evaluate(
        self,
        query: exp.Query,
        tables: Sequence[SourceTable],
        taken: Taken,
        shipped: Mapping[str, pa.Table],
        besides: Sequence[Taken] = (),
    ) -> Iterator[pa.RecordBatch]:
        sets = Transactions.from_taken(taken), [Transactions.from_taken(one) for one in besides]
        return remote.evaluate(self._connections, query, tables, *sets, shipped)

    def waiting(self, tables: Sequence[SourceTable]) -> Waiting:
        return capture.waiting(self._connections, tables)

    def close(self) -> None:
        self._connections.close()
