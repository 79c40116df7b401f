"""Capture put into the file and taken out of it again, and whether it is still as it was put there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from matview.errors import CannotCapture, CaptureBypassed, MatviewError, PrivilegeMissing, SourceDrifted
from matview.sources.engine import Problem, SourceTable
from matview.sources.problems import AGAIN, REREAD, columns_drift, not_captured, own_names
from matview.sources.sqlite.connect import Database
from matview.sources.sqlite.layout import COLLATIONS, CONSTANT, Layout, layout
from matview.sources.sqlite.objects import OWN_COLUMNS, REGISTER_COLUMNS, register_of, removal, statements
from matview.sources.sqlite.recording import Objects
from matview.sources.sqlite.triggers import order_matters
from matview.sources.sqlite.uniques import Unique

# what stands against it -----------------------------------------------------------------------------------------------


def obstacles(database: Database, tables: Sequence[SourceTable]) -> list[Problem]:
    """Why tables cannot be captured."""
    found: list[Problem] = []
    if not (os.access(database.path, os.W_OK) and os.access(database.path.parent, os.W_OK)):
        what = f"{database.path} and its directory are not both writable for this user"
        mend = f"chmod u+w {str(database.path)!r} {str(database.path.parent)!r}"
        found.append(Problem(PrivilegeMissing(what, help=mend)))
    with database.reading() as connection:
        for table in tables:
            found += [Problem(error, table.name) for error in table_obstacles(connection, database, table)]
    return found


def table_obstacles(connection: sqlite3.Connection, database: Database, table: SourceTable) -> list[MatviewError]:
    try:
        now = layout(connection, table.name)
    except MatviewError as error:
        return [error]
    found = own_names(now.table, OWN_COLUMNS)
    for unique in now.uniques:
        found += unique_obstacles(now, unique)
    if order_matters(connection, now, database.prefix, before_only=True):
        what = f"a BEFORE trigger of {table.name} writes to {table.name}: rows that REPLACE deletes could escape"
        found.append(CannotCapture(what, help="make it an AFTER trigger"))
    return found


def unique_obstacles(now: Layout, unique: Unique) -> list[MatviewError]:
    """A REPLACE whose victims the triggers could not find, and texts that only a user's program can compare."""
    found: list[MatviewError] = []
    for part in unique.parts:
        if part.collation.upper() not in COLLATIONS:
            what = f"an index of {now.table.name} compares texts by {part.collation}, which only its makers know"
            found.append(CannotCapture(what, help="only BINARY, NOCASE and RTRIM are known everywhere"))
    used = {part.text for part in unique.parts if part.is_column}
    whole = len(used) == len(unique.parts) and unique.where is None
    for column, default in now.defaults.items():
        if (column in used or not whole) and not CONSTANT.fullmatch(default.strip()):
            what = f"column {column!r} of {now.table.name} is unique, NOT NULL, and has the default {default}"
            found.append(CannotCapture(what, help="REPLACE would put a value there that is not known before"))
    if now.defaults and (used & now.computed or (not whole and now.computed)):
        what = f"an index of {now.table.name} is unique on a generated column, beside NOT NULL columns with defaults"
        found.append(CannotCapture(what, help="REPLACE would put a value there that is not known before"))
    return found


# what has become of it ------------------------------------------------------------------------------------------------


def check(database: Database, tables: Sequence[SourceTable], *, installed: bool) -> list[Problem]:
    if not installed:
        return obstacles(database, tables)
    with database.reading() as connection:
        return drift(database, connection, tables)


def drift(database: Database, connection: sqlite3.Connection, tables: Sequence[SourceTable]) -> list[Problem]:
    """Every table that is not what it was, or whose triggers are not as they were made."""
    known = {name: Objects(database.prefix, number) for name, number in register(database, connection).items()}
    return [
        Problem(error, table.name)
        for table in tables
        for error in table_drift(connection, table, known.get(table.name))
    ]


def table_drift(connection: sqlite3.Connection, table: SourceTable, objects: Objects | None) -> list[MatviewError]:
    if objects is None:
        return [not_captured(table)]
    try:
        now = layout(connection, table.name)
    except MatviewError as error:
        return [SourceDrifted(error.what, help=AGAIN)]
    if errors := columns_drift(table, now.table):
        return errors
    if now.identity != table.identity:
        return [SourceDrifted(f"the keys or indexes of {table.name} have changed", help=REREAD)]
    missing = [name for name, sql in statements(now, objects).items() if made_as(connection, name) != sql]
    if missing:
        what = f"changes of {table.name} were not captured for some time: {', '.join(missing)} is not as it was made"
        return [CaptureBypassed(what, help=REREAD)]
    if is_rebuilt(connection, now.name, objects):
        what = f"{table.name} was made anew, and filled before its triggers were there: its rows may be others"
        return [CaptureBypassed(what, help=REREAD)]
    if order_matters(connection, now, objects.prefix):
        what = f"a trigger of {table.name} that writes to it was made after capture, and comes before it"
        return [SourceDrifted(what, help=REREAD)]
    return []


def is_rebuilt(connection: sqlite3.Connection, table: str, objects: Objects) -> bool:
    """A table is older than what captures it, unless somebody has dropped it and put another in its place, triggers and
    all, as schemas of SQLite are often changed. Tables are listed in the order in which they were made, which VACUUM
    keeps."""
    query = "SELECT rowid FROM main.sqlite_schema WHERE type = 'table' AND name = ?"
    ((own,), (ours,)) = (connection.execute(query, (name,)).fetchone() for name in (table, objects.added))
    return bool(own > ours)


def made_as(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT sql FROM main.sqlite_schema WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def register(database: Database, connection: sqlite3.Connection) -> dict[str, int]:
    """The numbers of captured tables."""
    name = register_of(database.prefix)
    if made_as(connection, name) is None:
        return {}
    return dict(connection.execute(f"SELECT name, number FROM main.{name}").fetchall())


# doing it -------------------------------------------------------------------------------------------------------------


def install(database: Database, tables: Sequence[SourceTable]) -> None:
    """All in one transaction. What is captured already must be untouched: to mend it would hide what was missed."""
    for obstacle in obstacles(database, tables):
        raise obstacle.error
    with database.reading() as connection:
        if all(table.name in register(database, connection) for table in tables):
            return raise_drift(database, connection, tables)
    return database.writing(lambda connection: put(database, connection, tables))


def put(database: Database, connection: sqlite3.Connection, tables: Sequence[SourceTable]) -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS {register_of(database.prefix)} {REGISTER_COLUMNS}")
    numbers = register(database, connection)
    raise_drift(database, connection, [table for table in tables if table.name in numbers])
    for table in tables:
        if table.name not in numbers:
            put_table(database, connection, table)


def put_table(database: Database, connection: sqlite3.Connection, table: SourceTable) -> None:
    now = layout(connection, table.name)
    if now.identity != table.identity:
        raise SourceDrifted(f"{table.name} has changed since it was looked at", help="run it again")
    insert = f"INSERT INTO {register_of(database.prefix)} (name, identity) VALUES (?, ?) RETURNING number"
    ((number,),) = connection.execute(insert, (table.name, table.identity)).fetchall()
    for statement in statements(now, Objects(database.prefix, number)).values():
        connection.execute(statement)


def raise_drift(database: Database, connection: sqlite3.Connection, tables: Sequence[SourceTable]) -> None:
    """Looks closely once for each state of the file's schema."""
    schema = database.schema(connection)
    unknown = [table for table in tables if (*schema, table.name, table.identity) not in database.verified]
    for found in drift(database, connection, unknown):
        raise found.error
    database.verified.update((*schema, table.name, table.identity) for table in unknown)


def remove(database: Database, tables: Sequence[SourceTable]) -> None:
    """Also what is left of tables that are gone or have another name by now."""
    with database.reading() as connection:
        numbers = register(database, connection)
        if made_as(connection, register_of(database.prefix)) is None:
            return
    gone = [Objects(database.prefix, numbers[table.name]) for table in tables if table.name in numbers]
    database.writing(lambda connection: take_away(database, connection, gone))


def take_away(database: Database, connection: sqlite3.Connection, gone: Sequence[Objects]) -> None:
    for objects in gone:
        for statement in removal(objects):
            connection.execute(statement)
    if not register(database, connection):
        connection.execute(f"DROP TABLE IF EXISTS {register_of(database.prefix)}")
