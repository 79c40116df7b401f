"""The tables of a file as they are now."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from matview.sources.engine import SourceTable
from matview.sources.names import joined
from matview.sources.sqlite.connect import Database
from matview.sources.sqlite.layout import layout
from matview.sources.sqlite.objects import REGISTER_COLUMNS


def describe(database: Database, names: Sequence[str]) -> list[SourceTable]:
    with database.reading() as connection:
        return [layout(connection, name).table for name in names]


def tables(database: Database) -> list[str]:
    """Those that could be captured."""
    query = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name"
    with database.reading() as connection:
        names, own = connection.execute(query).fetchall(), ("sqlite_", *prefixes(connection))
    return [joined(name) for (name,) in names if not name.startswith(own)]


def prefixes(connection: sqlite3.Connection) -> list[str]:
    """How the names begin of what capture has made here, for whichever warehouse."""
    made = connection.execute("SELECT name, sql FROM main.sqlite_schema WHERE type = 'table'").fetchall()
    return [name.removesuffix("tables") for name, sql in made if sql.endswith(REGISTER_COLUMNS)]
