"""Capture put beside a database and taken away again, and whether it is still as it was put there."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pymysql
from pymysql.constants import ER

from matview.errors import CaptureBypassed, MatviewError, SourceDrifted, SourceUnreachable
from matview.sources.engine import Problem, SourceTable
from matview.sources.mariadb.connect import Connection, Database, execute, fetched, number_of
from matview.sources.mariadb.layout import Layout, cascades, ignored_updates, layout, quote
from matview.sources.mariadb.objects import (
    EVENTS,
    MISSED,
    OWN_COLUMNS,
    REGISTER,
    REGISTER_COLUMNS,
    TRIGGER_MODE,
    Objects,
    body,
    delta_tables,
    trigger,
)
from matview.sources.mariadb.privileges import missing, replica
from matview.sources.names import split
from matview.sources.problems import AGAIN, REREAD, columns_drift, not_captured, own_names
from matview.sources.sides import SIDES

DELTAS = (
    "SELECT t.TABLE_NAME, CAST(i.TABLE_ID AS CHAR), CAST(i.SPACE AS CHAR), "
    "DATE_FORMAT(t.CREATE_TIME, '%%Y-%%m-%%dT%%T') "
    "FROM information_schema.TABLES AS t JOIN information_schema.INNODB_SYS_TABLES AS i ON CAST(i.NAME AS BINARY) = "
    "CONCAT(CAST(CONVERT(t.TABLE_SCHEMA USING filename) AS BINARY), '/', "
    "CAST(CONVERT(t.TABLE_NAME USING filename) AS BINARY)) WHERE t.TABLE_SCHEMA = %s"
)
PATIENCE_SECONDS = 300.0
TRY_SECONDS = 0.02


# what stands against it -----------------------------------------------------------------------------------------------


def obstacles(database: Database, tables: Sequence[SourceTable]) -> list[Problem]:
    """Why tables cannot be captured."""
    with database.connected() as connection:
        names = [split(table.name)[-1] for table in tables]
        found = [Problem(error) for error in missing(connection, database, names)]
        for table in tables:
            found += [Problem(error, table.name) for error in table_obstacles(connection, database, table)]
    return found


def table_obstacles(connection: Connection, database: Database, table: SourceTable) -> list[MatviewError]:
    try:
        now = layout(connection, database.name, table.name)
    except MatviewError as error:
        return [error]
    return cascades(connection, now) + ignored_updates(connection, now) + own_names(now.table, OWN_COLUMNS)


# what has become of it ------------------------------------------------------------------------------------------------


def check(database: Database, tables: Sequence[SourceTable], *, installed: bool) -> list[Problem]:
    if not installed:
        return obstacles(database, tables)
    with database.connected() as connection:
        return drift(connection, database, tables)


def drift(connection: Connection, database: Database, tables: Sequence[SourceTable]) -> list[Problem]:
    """Every table that is not what it was, or whose triggers are not those that were made."""
    registered = register(connection, database)
    found: list[Problem] = []
    if bypassed := replica(connection):
        found.append(Problem(CaptureBypassed(bypassed.what, help=bypassed.help)))
    for table in tables:
        known = registered.get(table.name)
        found += [Problem(error, table.name) for error in table_drift(connection, database, table, known)]
    return found


def table_drift(
    connection: Connection, database: Database, table: SourceTable, known: tuple[int, str | None] | None
) -> list[MatviewError]:
    if known is None or known[1] is None:
        return [not_captured(table)]
    try:
        now = layout(connection, database.name, table.name)
    except MatviewError as error:
        return [SourceDrifted(error.what, help=AGAIN)]
    if errors := columns_drift(table, now.table):
        return errors
    if now.identity != table.identity:
        return [CaptureBypassed(f"{table.name} {what_happened(table.identity, now.identity)}", help=REREAD)]
    objects = Objects(database.own, database.prefix, known[0])
    triggers, _, deltas = known[1].partition(" ")
    if triggers_made(connection, now, objects) != triggers:
        what = f"changes of {table.name} were not captured: its triggers are not as made"
        return [CaptureBypassed(what, help=REREAD)]
    if errors := ignored_updates(connection, now):
        return [SourceDrifted(error.what, help=AGAIN) for error in errors]
    if deltas_made(connection, objects) != deltas:
        what = f"the captured changes of {table.name} are gone, or their tables are not as made"
        return [CaptureBypassed(what, help=REREAD)]
    for reason in missed(connection, objects):
        return [CaptureBypassed(f"changes of {table.name} could not be recorded: {reason}", help=REREAD)]
    return []


def what_happened(before: str, now: str) -> str:
    """TRUNCATE gives a table other numbers and leaves the time of its last alteration alone."""
    if before.partition(" ")[2] == now.partition(" ")[2]:
        return "was truncated, which fires no trigger"
    return "was altered, made anew or rebuilt: MariaDB does not tell whether its rows have changed in that"


def triggers_made(connection: Connection, now: Layout, objects: Objects) -> str:
    """When each of the three was made; what is missing or does something else has no time."""
    query = (
        "SELECT TRIGGER_NAME, ACTION_STATEMENT, DATE_FORMAT(CREATED, '%%Y-%%m-%%dT%%T.%%f') "
        "FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = %s "
        "AND ACTION_TIMING = 'AFTER' AND SQL_MODE = %s"
    )
    there = {name: (text, made) for name, text, made in fetched(connection, query, (now.name, TRIGGER_MODE))}
    times = []
    for event in EVENTS:
        text, made = there.get(objects.trigger(event), ("", ""))
        times.append(made if text == body(now, objects, event) else "-")
    return "/".join(times)


def deltas_made(connection: Connection, objects: Objects) -> str:
    """The numbers that InnoDB has given to delta tables and sequences, and when each was altered last; nothing of what
    is missing."""
    there = {name: "/".join(facts) for name, *facts in fetched(connection, DELTAS, (objects.own,))}
    wanted = [name for side in SIDES for name in (objects.numbers(side), *objects.deltas(side))]
    return " ".join(there.get(name, "-") for name in wanted)


def missed(connection: Connection, objects: Objects) -> list[str]:
    """Why something could not be recorded."""
    deltas = (objects.place(delta) for side in SIDES for delta in objects.deltas(side))
    queries = (f"SELECT {MISSED} FROM {delta} WHERE {MISSED} IS NOT NULL LIMIT 1" for delta in deltas)
    return [reason for query in queries for (reason,) in fetched(connection, query)]


def register(connection: Connection, database: Database) -> dict[str, tuple[int, str | None]]:
    """The numbers of captured tables, and when their triggers and delta tables were made."""
    try:
        rows = fetched(connection, f"SELECT name, number, made FROM {quote(database.own)}.{REGISTER}")
    except pymysql.MySQLError as error:
        if number_of(error) not in (ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR):
            raise
        return {}
    return {name: (number, made) for name, number, made in rows}


def raise_drift(connection: Connection, database: Database, tables: Sequence[SourceTable]) -> None:
    """To be asked in a snapshot, not before it: what is as it was now was so then."""
    for found in drift(connection, database, tables):
        raise found.error


# doing it -------------------------------------------------------------------------------------------------------------


def install(database: Database, tables: Sequence[SourceTable]) -> None:
    """All or none: what was begun is taken away again. What is captured already must be untouched: to mend it would
    hide what was missed."""
    for obstacle in obstacles(database, tables):
        raise obstacle.error
    with database.connected() as connection:
        one_at_a_time(connection, database)
        make_register(connection, database)
        there = register(connection, database)
        raise_drift(connection, database, [table for table in tables if there.get(table.name, (0, None))[1]])
        for number, made in there.values():
            if made is None:
                take_away(connection, database, number)
        new = [table for table in tables if not there.get(table.name, (0, None))[1]]
        try:
            for table in new:
                put_table(connection, database, table)
        except BaseException:
            remove(database, new)
            raise


def one_at_a_time(connection: Connection, database: Database) -> None:
    """Installations wait for one another; the lock ends with the connection."""
    if fetched(connection, "SELECT GET_LOCK(%s, 60)", (f"{database.own[:50]} install",)) != [(1,)]:
        raise SourceUnreachable(f"{database.address}: another installation is under way there")


def make_register(connection: Connection, database: Database) -> None:
    execute(connection, f"CREATE DATABASE IF NOT EXISTS {quote(database.own)} CHARACTER SET utf8mb4")
    place = f"{quote(database.own)}.{REGISTER}"
    execute(connection, f"CREATE TABLE IF NOT EXISTS {place} {REGISTER_COLUMNS} ENGINE = InnoDB")


def put_table(connection: Connection, database: Database, table: SourceTable) -> None:
    now = layout(connection, database.name, table.name)
    place = f"{quote(database.own)}.{REGISTER}"
    execute(connection, f"INSERT INTO {place} (name) VALUES (%s)", (table.name,))
    ((number,),) = fetched(connection, f"SELECT number FROM {place} WHERE name = %s", (table.name,))
    objects = Objects(database.own, database.prefix, number)
    execute(connection, f"SET SESSION sql_mode = '{TRIGGER_MODE}'")
    for side in SIDES:
        for statement in delta_tables(now, objects, side):
            execute(connection, statement)
    for event in EVENTS:
        patiently(connection, trigger(now, objects, event))
    if layout(connection, database.name, table.name).identity != table.identity:
        raise SourceDrifted(f"{table.name} has changed since it was looked at", help="run it again")
    made = f"{triggers_made(connection, now, objects)} {deltas_made(connection, objects)}"
    execute(connection, f"UPDATE {place} SET made = %s WHERE number = %s", (made, number))


def patiently(connection: Connection, statement: str) -> None:
    """A statement that wants a table to itself: it does not queue for it, which would make others queue behind it, but
    comes again and again until no transaction has the table. When a trigger is there, every transaction that wrote
    before it has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            execute(connection, f"SET STATEMENT lock_wait_timeout = 0 FOR {statement}")
            return
        except pymysql.MySQLError as error:
            if number_of(error) != ER.LOCK_WAIT_TIMEOUT or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.5, 1.5) * TRY_SECONDS)


def remove(database: Database, tables: Sequence[SourceTable]) -> None:
    """Also what is left of tables that are gone or have another name by now."""
    with database.connected() as connection:
        there = register(connection, database)
        for table in tables:
            if table.name in there:
                take_away(connection, database, there[table.name][0])
        if not register(connection, database):
            drop_own(connection, database)


def take_away(connection: Connection, database: Database, number: int) -> None:
    """Triggers first: without its delta tables, a trigger would keep writers from writing."""
    objects = Objects(database.own, database.prefix, number)
    query = (
        "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() AND TRIGGER_NAME = %s "
        "AND LOCATE(%s, ACTION_STATEMENT) > 0"
    )
    for event in EVENTS:
        if fetched(connection, query, (objects.trigger(event), quote(database.own))):
            patiently(connection, f"DROP TRIGGER IF EXISTS {objects.trigger(event)}")
    for side in SIDES:
        patiently(connection, f"DROP VIEW IF EXISTS {objects.side(side)}")
        for delta in objects.deltas(side):
            patiently(connection, f"DROP TABLE IF EXISTS {objects.place(delta)}")
        patiently(connection, f"DROP SEQUENCE IF EXISTS {objects.place(objects.numbers(side))}")
    execute(connection, f"DELETE FROM {quote(database.own)}.{REGISTER} WHERE number = %s", (number,))


def drop_own(connection: Connection, database: Database) -> None:
    """The database too, unless somebody has put something else into it."""
    execute(connection, f"DROP TABLE IF EXISTS {quote(database.own)}.{REGISTER}")
    query = "SELECT count(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
    if fetched(connection, query, (database.own,)) == [(0,)]:
        execute(connection, f"DROP DATABASE IF EXISTS {quote(database.own)}")
