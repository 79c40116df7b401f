"""Two ways to read the same tables: a session that pins a version, and what a reader without one gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import col

from matview.warehouse import Warehouse

TABLES = ("DailySales", "CityTotals")


class Desk(Protocol):
    """Where an analyst sits for the time of a session. Queries name tables as `{DailySales}`."""

    @property
    def version(self) -> int | None: ...

    def ask(self, query: str) -> Sequence[Row]: ...

    def close(self) -> None: ...


class Reader(Protocol):
    """Opens sessions, and knows how often the catalog has made it wait so far."""

    @property
    def waits(self) -> int: ...

    def open(self) -> Desk: ...


class PinnedDesk:
    """Matview's reader session: one version for all queries."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._session = warehouse.session()

    @property
    def version(self) -> int | None:
        return self._session.version

    def ask(self, query: str) -> Sequence[Row]:
        return self._session.sql(query.format(**{name: name for name in TABLES})).collect()

    def close(self) -> None:
        self._session.close()


class NaiveDesk:
    """For each query the newest snapshot of each table, in it the current values of all tuples that are not deleted:
    those of a transaction that has committed one table and not yet the other, too."""

    version: int | None = None

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse

    def ask(self, query: str) -> Sequence[Row]:
        newest: dict[str, Any] = {name: self._newest(name) for name in TABLES if f"{{{name}}}" in query}
        return self._warehouse.spark.sql(query, **newest).collect()

    def _newest(self, table: str) -> DataFrame:
        tuples = self._warehouse.versions(table)
        operation = next(name for name in tuples.columns if name in ("operation", "operation_1"))
        return tuples.where(col(operation) != "delete")

    def close(self) -> None:
        pass


class WarehouseReader:
    """A warehouse of its own for every analyst, so that its waits are that analyst's."""

    def __init__(self, warehouse: Warehouse, desk: type[PinnedDesk | NaiveDesk]) -> None:
        self._warehouse = warehouse
        self._desk = desk

    @property
    def waits(self) -> int:
        return self._warehouse.catalog.waits

    def open(self) -> Desk:
        return self._desk(self._warehouse)
