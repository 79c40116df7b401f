"""Four small tables, with and without keys, and random worlds: what they hold, and how that changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from sqlglot import exp

from matview.algebra.schema import Column, Schema
from matview.errors import UnknownTable

Row = tuple[Any, ...]
Signed = list[tuple[int, Row]]

TABLES: Mapping[str, Schema] = {
    "orders": Schema(
        (
            Column("id", "bigint", nullable=False),
            Column("customer", "bigint"),
            Column("city", "string"),
            Column("amount", "decimal(8,2)"),
            Column("paid", "boolean"),
        ),
        ("id",),
    ),
    "customers": Schema(
        (
            Column("id", "bigint", nullable=False),
            Column("name", "string"),
            Column("city", "string"),
            Column("credit", "int"),
        ),
        ("id",),
    ),
    "items": Schema((Column("order_id", "bigint"), Column("part", "string"), Column("qty", "int"))),
    "visits": Schema((Column("city", "string"), Column("day", "date"), Column("n", "int"))),
}

_CITIES = ["Oslo", "Bergen", "Oslo", "", None]
_VALUES: Mapping[str, Sequence[Any]] = {
    "customer": [1, 2, 2, 3, None],
    "city": _CITIES,
    "amount": ["1.50", "2.00", "-3.25", "10.00", None],
    "paid": [True, False, None],
    "name": ["ann", "bob", "Oslo", None],
    "credit": [0, 1, 2, 5, -1, None],
    "order_id": [1, 2, 2, 3, 9, None],
    "part": ["nut", "bolt", "nut", "", None],
    "qty": [1, 2, 2, 3, 0, None],
    "day": ["2024-01-31", "2024-02-01", "2025-02-01", None],
    "n": [1, 1, 2, 4, None],
}
"""Few different values, so that rows meet; nulls among them."""


def schema_of(table: exp.Table) -> Schema:
    if table.name.casefold() not in TABLES:
        raise UnknownTable(f"there is no table {table.name}")
    return TABLES[table.name.casefold()]


@dataclass(frozen=True)
class World:
    """The rows of each table before, and the changes of some, not net."""

    before: Mapping[str, Sequence[Row]]
    change: Mapping[str, Signed]

    def only(self, changed: Collection[str]) -> World:
        """The same, but only these tables change."""
        return World(self.before, {table: rows for table, rows in self.change.items() if table in changed})


def world(seed: int, number: int = 0) -> World:
    """Always the same for the same seed and number; every table changes, some by nothing."""
    random = Random(f"world {seed} {number}")
    before = {table: _rows(random, table, random.choice([0, 3, 4, 5, 6, 7])) for table in TABLES}
    return World(before, {table: _change(random, table, before[table]) for table in TABLES})


def _rows(random: Random, table: str, number: int) -> list[Row]:
    """Keys are kept, bags have duplicates."""
    rows = [_row(random, table) for _ in range(number)]
    return list({row[0]: row for row in rows}.values()) if TABLES[table].key else rows


def _row(random: Random, table: str) -> Row:
    return tuple(
        random.randint(1, 6) if name in TABLES[table].key else random.choice(_VALUES[name])
        for name in TABLES[table].names
    )


def _change(random: Random, table: str, before: Sequence[Row]) -> Signed:
    """Nothing, everything, or some of it; rows come, go, are updated, and some come only to go again."""
    share = random.choice([0.0, 0.3, 0.5, 0.7, 1.0])
    gone = [row for row in before if random.random() < share]
    updated = [_updated(random, table, row) for row in gone if random.random() < 0.4]
    come = _rows(random, table, random.choice([0, 1, 1, 2, 3]))
    if TABLES[table].key:
        taken = {row[0] for row in (*updated, *(row for row in before if row not in gone))}
        come = [row for row in come if row[0] not in taken]
    passing = random.sample([*before, *come], random.randint(0, 1)) if before else []
    noise = [(weight, row) for row in passing for weight in (1, -1)]
    signed = [*((-1, row) for row in gone), *((1, row) for row in (*updated, *come)), *noise]
    random.shuffle(signed)
    return signed


def _updated(random: Random, table: str, row: Row) -> Row:
    """The same row with another value in one column outside the key."""
    at = random.randrange(len(TABLES[table].key), len(row))
    value = random.choice(_VALUES[TABLES[table].names[at]])
    return (*row[:at], value, *row[at + 1 :])
