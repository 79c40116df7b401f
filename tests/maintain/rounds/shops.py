"""A warehouse over databases that go on living: what rounds are tested with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.sources.lab import Lab

import matview

ORDERS = "CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))"
HEAP = "CREATE TABLE heap (id INTEGER, city VARCHAR(40), amount DECIMAL(12,2))"
COLUMNS = ("id", "city", "amount")


class Killed(BaseException):
    """Stands for a process that ends here: nobody catches it."""


def rows(warehouse: matview.Warehouse | matview.ReaderSession, text: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in warehouse.sql(text).collect())  # type: ignore[union-attr]


def same(warehouse: matview.Warehouse, lab: Lab, *tables: str, prefix: str = "") -> None:
    """The replicas have what the source has, each row as often."""
    for table in tables:
        here = rows(warehouse, f"SELECT id, city, amount FROM `{prefix}{table}`")
        assert here == Counter(lab.rows(table, COLUMNS)), table


def states(warehouse: matview.Warehouse) -> list[str]:
    """Of the rounds, the oldest first."""
    return [one.state for one in warehouse.catalog.rounds.history(1000)[::-1]]


def stop_at(fatal: str) -> Any:
    """A hook that ends the process, as it were, at a step."""

    def step(name: str) -> None:
        if name == fatal:
            raise Killed(name)

    return step


def numbers(begin: int) -> Iterator[int]:
    while True:
        yield begin
        begin += 1
