"""Steps 1 and 4 at a MariaDB server: a set of transactions is the set of delta rows that one snapshot shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pymysql
from pymysql.constants import ER

from matview.sources.carried import Row, batch
from matview.sources.engine import Captured, SourceTable, Taken, Waiting
from matview.sources.mariadb.connect import Connection, Database, execute, fetched, number_of
from matview.sources.mariadb.install import raise_drift, register
from matview.sources.mariadb.layout import quote
from matview.sources.mariadb.numbers import Numbers
from matview.sources.mariadb.objects import MADE, NUMBER, Objects
from matview.sources.mariadb.types import carried_as
from matview.sources.problems import not_captured, not_one_at_a_time
from matview.sources.sides import SIDES, Sides, captured

BATCH = 2_000
"""How many delta rows one transaction deletes."""
RANGES = 200
"""How many ranges one query names."""

Wanted = Mapping[str, Numbers]
"""The numbers of each side."""


@dataclass(frozen=True, slots=True)
class Place:
    """A captured table and its delta tables."""

    table: SourceTable
    objects: Objects


def places(connection: Connection, database: Database, tables: Sequence[SourceTable]) -> list[Place]:
    known = register(connection, database)
    for table in tables:
        if table.name not in known:
            raise not_captured(table)
    return [Place(table, Objects(database.own, database.prefix, known[table.name][0])) for table in tables]


# step 1 ---------------------------------------------------------------------------------------------------------------


def capture(
    database: Database, tables: Sequence[SourceTable], *, most: int | None = None, besides: Sequence[Taken] = ()
) -> Captured:
    if most is not None:
        raise not_one_at_a_time("MariaDB")
    with database.reading() as connection:
        raise_drift(connection, database, tables)
        found = places(connection, database, tables)
        before = {place.table.name: united(place.table, besides) for place in found}
        rows = {place.table.name: read(connection, place, others(before[place.table.name])) for place in found}
    taken = {
        "tables": {
            name: {side: Numbers.of(row[-1] for row in sides[side]).plain() for side in SIDES}
            for name, sides in rows.items()
        },
        "before": {name: {side: before[name][side].plain() for side in SIDES} for name in rows},
    }
    return captured(tables, taken, rows, arrow)


def changes(database: Database, tables: Sequence[SourceTable], taken: Taken) -> Captured:
    with database.reading() as connection:
        rows = {
            place.table.name: read(connection, place, united(place.table, [taken]))
            for place in places(connection, database, tables)
        }
    return captured(tables, taken, rows, arrow)


def numbers_in(taken: Taken, table: str, side: str, part: str = "tables") -> Numbers:
    """The numbers of the set; a table that was not there then has none."""
    return Numbers.read(taken.get(part, {}).get(table, {}).get(side, ()))


def united(table: SourceTable, sets: Sequence[Taken]) -> Wanted:
    """All the numbers that several sets have of a table."""
    return {side: Numbers.united(numbers_in(taken, table.name, side) for taken in sets) for side in SIDES}


def others(numbers: Wanted) -> Wanted:
    return {side: numbers[side].others() for side in SIDES}


def read(connection: Connection, place: Place, wanted: Wanted) -> Sides:
    """The delta rows of these numbers, in their order: the columns, and then the number."""
    names = ", ".join(asked_for(column.source_type, column.name) for column in place.table.columns)
    sides: dict[str, list[Row]] = {}
    for side in SIDES:
        query = f"SELECT {names}, {NUMBER} FROM {place.objects.side(side)}"
        parts = (f"{query} WHERE {where} ORDER BY {NUMBER}" for where in conditions(wanted[side]))
        sides[side] = [row for part in parts for row in fetched(connection, part)]
    return sides


def conditions(numbers: Numbers) -> list[str]:
    """The set as conditions of bearable length."""
    return [
        " OR ".join(f"{NUMBER} BETWEEN {low:d} AND {high:d}" for low, high in numbers.ranges[start : start + RANGES])
        for start in range(0, len(numbers.ranges), RANGES)
    ]


def asked_for(source_type: str, name: str) -> str:
    """A column in the form in which the driver loses nothing of it."""
    return f"{carried_as(source_type)[0].read.format(quote(name))}"


def arrow(table: SourceTable, rows: Sequence[Row]) -> pa.RecordBatch:
    carriers = [carried_as(column.source_type)[0] for column in table.columns]
    return batch(rows, table.columns, carriers, partial(named, table, rows))


def named(table: SourceTable, rows: Sequence[Row], number: int) -> str:
    """A row in an error: by its key, or else by all it has."""
    values: dict[str, Any] = {column.name: value for column, value in zip(table.columns, rows[number], strict=False)}
    shown = ", ".join(f"{name} {values[name]!r}" for name in table.key or values)
    return f"{table.name}, {shown if len(shown) <= 200 else shown[:197] + '...'}"


# step 4 ---------------------------------------------------------------------------------------------------------------


def acknowledge(database: Database, tables: Sequence[SourceTable], taken: Taken) -> None:
    """Delta rows of the set are deleted, some at a time. Nobody waits for that: others only ever add rows."""
    with database.connected() as connection:
        known = register(connection, database)
        for table in tables:
            if table.name in known:
                objects = Objects(database.own, database.prefix, known[table.name][0])
                for side in SIDES:
                    for delta in objects.deltas(side):
                        delete(connection, objects.place(delta), numbers_in(taken, table.name, side))


def delete(connection: Connection, delta: str, numbers: Numbers) -> None:
    """Ranges of rows that are all there and committed. The last one of each is deleted by itself: a scan that ends at
    it never looks at the next row, which may belong to a transaction that is open."""
    there = [
        row[0]
        for where in conditions(numbers)
        for row in fetched(connection, f"SELECT {NUMBER} FROM {delta} WHERE {where}")
    ]
    execute(connection, "SET SESSION innodb_lock_wait_timeout = 1")
    for low, high in Numbers.of(there).pieces(BATCH):
        execute(connection, "START TRANSACTION")
        if low < high:
            again(
                connection,
                f"DELETE d FROM {delta} AS d FORCE INDEX (PRIMARY) WHERE {NUMBER} BETWEEN {low} AND {high - 1}",
            )
        again(connection, f"DELETE FROM {delta} WHERE {NUMBER} = {high}")
        execute(connection, "COMMIT")


def again(connection: Connection, statement: str, times: int = 10) -> None:
    for left in reversed(range(times)):
        try:
            execute(connection, statement)
            return
        except pymysql.MySQLError as error:
            if number_of(error) != ER.LOCK_WAIT_TIMEOUT or not left:
                raise


# how far it is ahead --------------------------------------------------------------------------------------------------


def waiting(database: Database, tables: Sequence[SourceTable]) -> Waiting:
    rows, oldest = 0, list[str]()
    with database.reading() as connection:
        for place in places(connection, database, tables):
            for side in SIDES:
                query = f"SELECT count(*), CAST(min({MADE}) AS CHAR) FROM {place.objects.side(side)}"
                ((number, since),) = fetched(connection, query)
                rows += number
                oldest += [since] if since else []
    since = datetime.fromisoformat(min(oldest)).replace(tzinfo=UTC) if oldest else None
    return Waiting(rows, 1 if rows else 0, since, None)
