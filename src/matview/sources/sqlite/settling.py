"""Marks compared with the rows that are there, before anything is read (see `recording`).

So no reader sees a table that its delta tables do not account for. It is a short transaction, and only after a
statement in which rows were in the way of others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from matview.sources.engine import SourceTable
from matview.sources.sqlite.connect import Database
from matview.sources.sqlite.install import raise_drift, register
from matview.sources.sqlite.layout import Layout, layout
from matview.sources.sqlite.recording import BASE, MARKS, THERE, Objects, names, same_row, values
from matview.sources.sqlite.uniques import quote


@contextmanager
def reading(database: Database, tables: Sequence[SourceTable]) -> Iterator[sqlite3.Connection]:
    """A snapshot in which the tables have not drifted, and every change of them has been recorded."""
    with database.errors(), closing(database.open()) as connection:
        begin_settled(database, connection, tables)
        yield connection


def begin_settled(database: Database, connection: sqlite3.Connection, tables: Sequence[SourceTable]) -> None:
    """The beginning of such a snapshot."""
    while True:
        connection.execute("BEGIN")
        raise_drift(database, connection, tables)
        if not any(is_unsettled(connection, *one) for one in marked_tables(database, connection, tables)):
            return
        connection.execute("ROLLBACK")
        database.writing(lambda other: settle(database, other, tables))


def marked_tables(
    database: Database, connection: sqlite3.Connection, tables: Sequence[SourceTable]
) -> list[tuple[Layout, Objects]]:
    """Captured tables that have any marks."""
    numbers = register(database, connection)
    known = [(table, Objects(database.prefix, numbers[table.name])) for table in tables if table.name in numbers]
    return [
        (layout(connection, table.name), objects)
        for table, objects in known
        if connection.execute(f"SELECT 1 FROM main.{objects.marked} LIMIT 1").fetchone()
    ]


def is_unsettled(connection: sqlite3.Connection, now: Layout, objects: Objects) -> bool:
    """Whether a mark differs from what is there: what was in the way of a statement that ignored it does not."""
    return any(
        connection.execute(f"SELECT 1 {rows} LIMIT 1").fetchone() is not None
        for rows in (gone(now, objects), new(now, objects))
    )


def settle(database: Database, connection: sqlite3.Connection, tables: Sequence[SourceTable]) -> None:
    """Records what became of marked rows. No statement is under way while this one writes."""
    for now, objects in marked_tables(database, connection, tables):
        target = f"({names(now)})"
        connection.execute(f"INSERT INTO main.{objects.deleted} {target} SELECT {names(now)} {gone(now, objects)}")
        connection.execute(
            f"INSERT INTO main.{objects.added} {target} SELECT {values(now, f'{BASE}.')} {new(now, objects)}"
        )
        connection.execute(f"DELETE FROM main.{objects.marked}")


def gone(now: Layout, objects: Objects) -> str:
    """Marks of rows that are not there as they were."""
    base = f"SELECT 1 FROM main.{quote(now.name)} AS {BASE}"
    there = f"{base} WHERE {same_row(now, f'{BASE}.', f'{MARKS}.')} AND {same_values(now)}"
    return f"FROM main.{objects.marked} AS {MARKS} WHERE {MARKS}.{THERE} AND NOT EXISTS ({there})"


def new(now: Layout, objects: Objects) -> str:
    """Rows with a mark that were not there, or otherwise."""
    return (
        f"FROM main.{objects.marked} AS {MARKS} CROSS JOIN main.{quote(now.name)} AS {BASE} "
        f"WHERE {same_row(now, f'{BASE}.', f'{MARKS}.')} AND NOT ({MARKS}.{THERE} AND {same_values(now)})"
    )


def same_values(now: Layout) -> str:
    """Byte by byte, whatever the collations of the table."""
    return " AND ".join(
        f"{BASE}.{quote(column.name)} IS {MARKS}.{quote(column.name)} COLLATE BINARY" for column in now.columns
    )
