"""Steps 1 and 4 at a SQLite file: a set of transactions is a range of numbers in each delta table, in one snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa

from matview.errors import CaptureBypassed
from matview.sources.carried import Row
from matview.sources.engine import Captured, SourceTable, Taken, Waiting
from matview.sources.problems import not_captured, not_one_at_a_time
from matview.sources.sides import SIDES, Sides, captured
from matview.sources.sqlite.connect import Database
from matview.sources.sqlite.install import register
from matview.sources.sqlite.objects import MADE, NUMBER, register_of
from matview.sources.sqlite.recording import ROW, Objects
from matview.sources.sqlite.rows import batch, fetched
from matview.sources.sqlite.settling import reading, settle
from matview.sources.sqlite.uniques import quote

BATCH = 5_000
"""How many delta rows one transaction deletes: some milliseconds, during which nobody else can write."""

JULIAN_DAY_OF_1970 = 2440587.5
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """A captured table, and up to which numbers its delta tables have been acknowledged."""

    table: SourceTable
    objects: Objects
    floor: dict[str, int]

    def delta(self, side: str) -> str:
        return self.objects.added if side == "added" else self.objects.deleted


def places(database: Database, connection: sqlite3.Connection, tables: Sequence[SourceTable]) -> list[Place]:
    numbers = register(database, connection)
    found = []
    for table in tables:
        if table.name not in numbers:
            raise not_captured(table)
        query = f"SELECT added, deleted FROM main.{register_of(database.prefix)} WHERE number = ?"
        added, deleted = connection.execute(query, (numbers[table.name],)).fetchone()
        found.append(Place(table, Objects(database.prefix, numbers[table.name]), {"added": added, "deleted": deleted}))
    return found


def greatest(connection: sqlite3.Connection, place: Place, side: str) -> int:
    (number,) = connection.execute(f"SELECT max({NUMBER}) FROM main.{place.delta(side)}").fetchone()
    return max(number or 0, place.floor[side])


# step 1 ---------------------------------------------------------------------------------------------------------------


def capture(
    database: Database, tables: Sequence[SourceTable], *, most: int | None = None, besides: Sequence[Taken] = ()
) -> Captured:
    if most is not None:
        raise not_one_at_a_time("SQLite")
    with reading(database, tables) as connection:
        found = places(database, connection, tables)
        taken = visible(connection, found, besides)
        rows = {place.table.name: read(connection, place, taken) for place in found}
    return captured(tables, taken, rows, arrow)


def changes(database: Database, tables: Sequence[SourceTable], taken: Taken) -> Captured:
    with database.reading() as connection:
        rows = {place.table.name: read(connection, place, taken) for place in places(database, connection, tables)}
    return captured(tables, taken, rows, arrow)


def visible(connection: sqlite3.Connection, found: Sequence[Place], besides: Sequence[Taken] = ()) -> Taken:
    """All that the snapshot shows and no other set has."""
    ranges: dict[str, dict[str, list[int]]] = {}
    for place in found:
        ranges[place.table.name] = {
            side: [
                max([place.floor[side], *(range_of(other, place.table, side)[1] for other in besides)]),
                greatest(connection, place, side),
            ]
            for side in SIDES
        }
    return {"tables": ranges}


def range_of(taken: Taken, table: SourceTable, side: str) -> Range:
    """The numbers of the set: after the first, up to the second. A table that was not there then has none."""
    low, high = taken.get("tables", {}).get(table.name, {}).get(side, (0, 0))
    return low, high


def read(connection: sqlite3.Connection, place: Place, taken: Taken) -> Sides:
    names = ", ".join(quote(column.name) for column in place.table.columns)
    row = f", {ROW}" if has_row(connection, place) else ""
    sides: dict[str, list[Row]] = {}
    for side in SIDES:
        query = (
            f"SELECT {names}{row} FROM main.{place.delta(side)} WHERE {NUMBER} > ? AND {NUMBER} <= ? ORDER BY {NUMBER}"
        )
        sides[side] = fetched(connection, query, range_of(taken, place.table, side))
    return sides


def has_row(connection: sqlite3.Connection, place: Place) -> bool:
    query = "SELECT count(*) FROM pragma_table_info(?, 'main') WHERE name = ?"
    return bool(connection.execute(query, (place.objects.added, ROW)).fetchone()[0])


def arrow(table: SourceTable, rows: Sequence[Row]) -> pa.RecordBatch:
    return batch(rows, table.columns, partial(named, table, rows))


def named(table: SourceTable, rows: Sequence[Row], number: int) -> str:
    """A row in an error: by its rowid, or else by its key."""
    row = rows[number]
    if len(row) > len(table.columns):
        return f"{table.name}, rowid {row[-1]}"
    values = {column.name: value for column, value in zip(table.columns, row, strict=True)}
    return f"{table.name}, {', '.join(f'{name} {values[name]!r}' for name in table.key)}"


# step 4 ---------------------------------------------------------------------------------------------------------------


def acknowledge(database: Database, tables: Sequence[SourceTable], taken: Taken) -> None:
    """Delta rows of the set are deleted, some at a time. The last number of a delta table stays, with its row: SQLite
    gives the number after the greatest that there is, and no number may be given twice."""
    with database.reading() as connection:
        idle = all(is_done(connection, place, taken) for place in places(database, connection, tables))
    while not idle:
        idle = database.writing(lambda connection: delete_some(database, connection, tables, taken))


def is_done(connection: sqlite3.Connection, place: Place, taken: Taken) -> bool:
    marks = connection.execute(f"SELECT EXISTS (SELECT 1 FROM main.{place.objects.marked})").fetchone()
    return marks == (0,) and all(is_side_done(connection, place, side, taken) for side in SIDES)


def is_side_done(connection: sqlite3.Connection, place: Place, side: str, taken: Taken) -> bool:
    high = range_of(taken, place.table, side)[1]
    deletable = min(high, last(connection, place, side) - 1)
    return place.floor[side] >= high and smallest(connection, place, side) > deletable


def smallest(connection: sqlite3.Connection, place: Place, side: str) -> int:
    (number,) = connection.execute(f"SELECT min({NUMBER}) FROM main.{place.delta(side)}").fetchone()
    return number if number is not None else 2**63


def last(connection: sqlite3.Connection, place: Place, side: str) -> int:
    (number,) = connection.execute(f"SELECT max({NUMBER}) FROM main.{place.delta(side)}").fetchone()
    return number or 0


def delete_some(
    database: Database, connection: sqlite3.Connection, tables: Sequence[SourceTable], taken: Taken
) -> bool:
    """Whether that was all of it."""
    settle(database, connection, tables)
    found = places(database, connection, tables)
    for place in found:
        for side in SIDES:
            low, high = range_of(taken, place.table, side)
            if low > place.floor[side]:
                raise CaptureBypassed(f"the changes of {place.table.name} before this set were not acknowledged")
            up_to = min(high, last(connection, place, side) - 1, smallest(connection, place, side) + BATCH)
            connection.execute(f"DELETE FROM main.{place.delta(side)} WHERE {NUMBER} <= ?", (up_to,))
            raised = f"UPDATE main.{register_of(database.prefix)} SET {side} = max({side}, ?) WHERE number = ?"
            connection.execute(raised, (high, place.objects.number))
    return all(is_done(connection, place, taken) for place in places(database, connection, tables))


# how far it is ahead --------------------------------------------------------------------------------------------------


def waiting(database: Database, tables: Sequence[SourceTable]) -> Waiting:
    """Numbers follow one another without a gap, so that only marks have to be counted."""
    rows, oldest = 0, list[float]()
    with database.reading() as connection:
        for place in places(database, connection, tables):
            rows += connection.execute(f"SELECT count(*) FROM main.{place.objects.marked}").fetchone()[0]
            for side in SIDES:
                rows += greatest(connection, place, side) - place.floor[side]
                query = f"SELECT {MADE} FROM main.{place.delta(side)} WHERE {NUMBER} > ? ORDER BY {NUMBER} LIMIT 1"
                oldest += [made for (made,) in connection.execute(query, (place.floor[side],))]
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=min(oldest) - JULIAN_DAY_OF_1970) if oldest else None
    return Waiting(rows, 1 if rows else 0, since, None)
