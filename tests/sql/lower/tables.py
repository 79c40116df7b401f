"""Small tables with nulls, duplicates and odd names; the same once full and once empty."""

from __future__ import annotations

import duckdb
from sqlglot import exp

from matview.algebra.schema import Column, Schema
from matview.errors import UnknownTable

TABLES = {
    "people": Schema(
        (
            Column("id", "int", nullable=False),
            Column("name", "string"),
            Column("city", "string"),
            Column("age", "int"),
            Column("boss", "int"),
        ),
        ("id",),
    ),
    "sales": Schema(
        (
            Column("id", "int", nullable=False),
            Column("person", "int"),
            Column("city", "string"),
            Column("amount", "decimal(8,2)"),
            Column("day", "date"),
            Column("paid", "boolean"),
        ),
        ("id",),
    ),
    "visits": Schema((Column("city", "string"), Column("day", "date"), Column("n", "int"))),
    "nothing": Schema((Column("id", "int", nullable=False), Column("a", "int"), Column("b", "string")), ("id",)),
    "lists": Schema((Column("id", "int", nullable=False), Column("xs", "array<int>")), ("id",)),
    "codes": Schema((Column("id", "int", nullable=False), Column("s", "string"), Column("d", "decimal(4,1)")), ("id",)),
    "odd.table": Schema((Column("a.b", "int"), Column("c", "int"))),
    "odd": Schema((Column("table.a.b", "int"), Column("c", "int"))),
}

_ROWS = {
    "people": """(1, 'zoe', 'Oslo', 50, NULL), (2, 'ann', 'Oslo', 40, NULL), (3, 'bob', 'Oslo', 30, 1),
        (4, 'cid', 'Bergen', NULL, 1), (5, 'dan', NULL, 20, 3), (6, 'eve', 'Oslo', 40, 9)""",
    "sales": """(1, 1, 'Oslo', 2.00, '2024-01-31', TRUE), (2, 1, 'Oslo', 3.50, NULL, FALSE),
        (3, 2, 'Bergen', 2.00, '2024-02-01', NULL), (4, 3, NULL, -3.25, '2024-02-01', TRUE),
        (5, NULL, 'Oslo', 10.00, '2024-01-31', TRUE), (6, 2, 'Paris', NULL, '2025-01-31', NULL)""",
    "visits": """('Oslo', '2024-01-31', 1), ('Oslo', '2024-01-31', 2), ('Paris', NULL, 4), ('Paris', NULL, 4),
        (NULL, '2024-02-01', 1), (NULL, NULL, NULL)""",
    "lists": "(1, [1, 2, 1]), (2, []), (3, NULL), (4, [5, NULL])",
    "codes": "(1, '1', 1.0), (2, '01', 1.0), (3, NULL, 2.0), (4, '2', NULL)",
    "odd.table": "(1, 1), (2, NULL), (2, 3)",
    "odd": "(1, 1), (3, 2)",
}


def schema_of(table: exp.Table) -> Schema:
    for name, schema in TABLES.items():
        if name.casefold() == table.name.casefold():
            return schema
    raise UnknownTable(f"there is no table `{table.name}`")


def database(rows: dict[str, str] | None = None) -> duckdb.DuckDBPyConnection:
    """The tables, holding `rows`."""
    made = duckdb.connect(":memory:", config={"threads": 1})
    made.execute("PRAGMA disable_optimizer")  # a handful of rows: planning is what takes the time
    for name, schema in TABLES.items():
        made.execute(f'CREATE TABLE "{name}" ({", ".join(map(_column, schema.columns))})')
        if text := (rows or {}).get(name):
            made.execute(f'INSERT INTO "{name}" VALUES {text}')
    return made


def full() -> duckdb.DuckDBPyConnection:
    return database(_ROWS)


def _column(column: Column) -> str:
    kinds = {"string": "VARCHAR", "array<int>": "INTEGER[]"}
    return f'"{column.name}" {kinds.get(column.type, column.type)}'
