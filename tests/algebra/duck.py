"""DuckDB as the oracle: relational expressions rendered to its SQL, run on rows in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import duckdb

from matview.algebra.nodes import Node
from matview.sql.render import query
from matview.versions.text import foreign_text

from .strategies import TABLES, Data, Row

_TYPES = {"int": "INTEGER", "bigint": "BIGINT", "string": "VARCHAR"}


def connect(tables: Mapping[str, Sequence[tuple[str, str]]] | None = None) -> duckdb.DuckDBPyConnection:
    """A database in memory with empty tables: those of the strategies, and `tables` (name to columns and types).

    It runs queries as they stand: on few rows, its optimizer takes longer than it saves.
    """
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("PRAGMA disable_optimizer")
    for table in TABLES.values():
        create(connection, table.name, [(f.name, f.type) for f in table.fields])
    for name, columns in (tables or {}).items():
        create(connection, name, columns)
    return connection


def create(connection: duckdb.DuckDBPyConnection, name: str, columns: Iterable[tuple[str, str]]) -> None:
    """An empty table; types are Spark's."""
    made = ", ".join(f'"{column}" {_TYPES[kind]}' for column, kind in columns)
    connection.execute(f'CREATE OR REPLACE TABLE "{name}" ({made})')


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: Iterable[Row]) -> None:
    """The table holds these rows and no others."""
    connection.execute(f'TRUNCATE "{name}"')
    if texts := ["(" + ", ".join(map(_literal, row)) + ")" for row in rows]:
        connection.execute(f'INSERT INTO "{name}" VALUES {", ".join(texts)}')


def load(connection: duckdb.DuckDBPyConnection, data: Data) -> None:
    """The tables hold these rows and no others."""
    connection.execute("BEGIN")
    for name, rows in data.items():
        fill(connection, name, rows)
    connection.execute("COMMIT")


def sql_of(node: Node) -> str:
    return foreign_text(query(node), "duckdb")


def execute(node: Node, connection: duckdb.DuckDBPyConnection) -> Counter[Row]:
    """How often each row stands in the node's result."""
    return Counter(connection.execute(sql_of(node)).fetchall())


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return "'" + value.replace("'", "''") + "'"
    return str(value)
