"""What views over tables at several sources should show: their queries over given rows, computed by another engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import duckdb
from tests.maintain.rounds.shops import COLUMNS
from tests.sources.lab import Lab


class Oracle:
    """Tables (id, city, amount) by their names, each as it is at a lab just now."""

    def __init__(self, tables: Mapping[str, tuple[Lab, str]]) -> None:
        self._tables = tables
        self._connection = duckdb.connect(config={"threads": 1})

    def look(self) -> None:
        """From here on it answers from the rows that are there now."""
        for name, (lab, table) in self._tables.items():
            self.put(name, lab.rows(table, COLUMNS))

    def put(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """A table has these rows."""
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} (id BIGINT, city TEXT, amount DECIMAL(12,2))")
        if given := list(rows):
            self._connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", given)

    def rows(self, query: str) -> Counter[tuple[Any, ...]]:
        return Counter(self._connection.execute(query).fetchall())


def writing(random: Random, lab: Lab) -> None:
    """One transaction that touches both tables of a lab, keys and nulls included."""
    city = random.choice(["'Oslo'", "'Bergen'", "NULL", "'Moss'"])
    new = random.randrange(1000, 100_000)
    lab.together(
        f"INSERT INTO orders VALUES ({new}, {city}, {random.randrange(9)})",
        f"UPDATE orders SET amount = amount + 1, city = {city} WHERE id % 3 = {random.randrange(3)}",
        f"DELETE FROM orders WHERE id % 5 = {random.randrange(5)} AND id > 2",
        f"INSERT INTO heap VALUES ({random.choice([1, 2, new])}, {city}, 1.50), (1, {city}, 1.50)",
        f"DELETE FROM heap WHERE city = {city} AND id = 1",
    )
