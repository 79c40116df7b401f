"""A SQLite file for the contract of sources."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from tests.sources.lab import Lab, Row, Sample


class SqliteWriter:
    """A connection of a user."""

    def __init__(self, path: Path, **pragmas: str) -> None:
        self.connection = sqlite3.connect(path, timeout=20, isolation_level=None, check_same_thread=False)
        for name, value in pragmas.items():
            self.connection.execute(f"PRAGMA {name} = {value}")

    def execute(self, sql: str) -> object:
        return self.connection.execute(sql).fetchall()

    def begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()


class SqliteLab(Lab):
    many_writers = False
    orders_transactions = False
    conflicts = (sqlite3.OperationalError, sqlite3.IntegrityError)
    samples = (
        Sample("INTEGER", ("0", "-9223372036854775808", "9223372036854775807"), "bigint", (0, -(2**63), 2**63 - 1)),
        Sample("SMALLINT", ("'12'", "40000"), "bigint", (12, 40000)),
        Sample("BOOLEAN", ("TRUE", "0"), "boolean", (True, False)),
        Sample("REAL", ("1", "0.1", "1e308", "9e999"), "double", (1.0, 0.1, 1e308, float("inf"))),
        Sample(
            "DECIMAL(12,2)",
            ("1", "0.1", "'-1234567890.12'"),
            "decimal(12,2)",
            (1, Decimal("0.1"), Decimal("-1234567890.12")),
        ),
        Sample("NUMERIC(5)", ("12345", "-0.0"), "decimal(5,0)", (12345, 0)),
        Sample("TEXT", ("''", "'Ål \U0001f600'", "'12'", "char(0)"), "string", ("", "Ål \U0001f600", "12", "\0")),
        Sample("VARCHAR(10) COLLATE NOCASE", ("'aB'", "'Ab'"), "string", ("aB", "Ab")),
        Sample("BLOB", ("x''", "x'00ff'"), "binary", (b"", b"\x00\xff")),
        Sample("DATE", ("'2024-02-29'", "'0001-01-01'"), "date", (date(2024, 2, 29), date(1, 1, 1))),
        Sample(
            "DATETIME",
            ("'2024-12-31 23:59:59.000001'", "'2024-12-31T23:59:59.12'", "'2024-01-01 00:00'", "'0999-01-01 00:00:00'"),
            "timestamp_ntz",
            (
                datetime(2024, 12, 31, 23, 59, 59, 1),
                datetime(2024, 12, 31, 23, 59, 59, 120000),
                datetime(2024, 1, 1),
                datetime(999, 1, 1),
            ),
        ),
        Sample("TIME", ("'12:00'",), "string", ("12:00",)),
        Sample("JSON", ("'{\"a\": 1}'", "5", "0.5"), "string", ('{"a": 1}', "5", "0.5")),
        Sample(
            "UUID", ("'8f1e8a52-5d1c-4a58-a6d6-0b1f6a2c1d11'",), "string", ("8f1e8a52-5d1c-4a58-a6d6-0b1f6a2c1d11",)
        ),
    )
    refused = ("", "ANY", "NUMERIC", "DECIMAL(39,2)", "DECIMAL(5,6)", "STRING", "GEOMETRY")
    drifts: ClassVar = {
        "a column more": ("ALTER TABLE {table} ADD COLUMN more TEXT", "INSERT INTO {table} VALUES (1, 'Oslo', 2, '')"),
        "a column renamed": (
            "ALTER TABLE {table} RENAME COLUMN city TO town",
            "INSERT INTO {table} (id, town) VALUES (1, 'Oslo')",
            "UPDATE {table} SET town = 'Rome'",
        ),
        "the table renamed": (
            "ALTER TABLE {table} RENAME TO other_{table}",
            "INSERT INTO other_{table} VALUES (1, 'Oslo', 2)",
            "DELETE FROM other_{table}",
        ),
        "the table dropped": ("DROP TABLE {table}",),
        "the table made anew": (
            "DROP TABLE {table}",
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))",
        ),
        "the table made anew with another type": (
            "DROP TABLE {table}",
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, city VARCHAR(40), amount REAL)",
        ),
        "a type that cannot be carried": (
            "DROP TABLE {table}",
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, city VARCHAR(40), amount ANY)",
        ),
        "a unique index more": ("CREATE UNIQUE INDEX unique_{table} ON {table} (city)",),
    }

    bypasses: ClassVar = frozenset({"the table made anew"})

    def __init__(self, path: Path, journal: str = "delete") -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
            connection.execute("PRAGMA user_version = 1")

    def beside(self) -> str:
        return f"{self.url}?matview_schema=second"

    def writer(self, **pragmas: str) -> SqliteWriter:
        return SqliteWriter(self.path, synchronous="off", **pragmas)

    def quote(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def rows(self, table: str, columns: Sequence[str]) -> list[Row]:
        names = ", ".join(self.quote(column) for column in columns)
        with closing(sqlite3.connect(self.path, timeout=20)) as connection:
            found = connection.execute(f"SELECT {names} FROM {self.quote(table)}").fetchall()
        return [tuple(map(carried, columns, row)) for row in found]

    def objects(self) -> object:
        with closing(sqlite3.connect(self.path)) as connection:
            return sorted(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall())


def carried(column: str, value: Any) -> Any:
    """`amount` is a decimal wherever it occurs in the contract."""
    return value if value is None or column != "amount" else Decimal(repr(value)).quantize(Decimal("0.01"))
