"""A MariaDB database for the contract of sources."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import ClassVar

import pymysql
from tests.servers_mariadb import opened
from tests.sources.lab import Lab, Row, Sample


class MariadbWriter:
    """A connection of a user."""

    def __init__(self, url: str) -> None:
        self.connection = opened(url, autocommit=True, local_infile=True, init_command="SET time_zone = '+00:00'")

    def execute(self, sql: str) -> object:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def begin(self) -> None:
        self.connection.begin()

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def close(self) -> None:
        self.connection.close()


OBJECTS = (
    "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE CONCAT('%', DATABASE())",
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA LIKE CONCAT('%', DATABASE())",
    "SELECT TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()",
    "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA LIKE CONCAT('%', DATABASE())",
)


class MariadbLab(Lab):
    orders_transactions = False
    slices_heaps = False
    analyze = "ANALYZE TABLE {table}"
    conflicts = (pymysql.err.OperationalError, pymysql.err.IntegrityError)
    samples = (
        Sample("TINYINT", ("-128", "127"), "tinyint", (-128, 127)),
        Sample("BOOLEAN", ("TRUE", "FALSE"), "tinyint", (1, 0)),
        Sample("TINYINT UNSIGNED", ("255",), "smallint", (255,)),
        Sample("SMALLINT", ("-32768",), "smallint", (-32768,)),
        Sample("SMALLINT UNSIGNED", ("65535",), "int", (65535,)),
        Sample("MEDIUMINT UNSIGNED ZEROFILL", ("16777215",), "int", (16777215,)),
        Sample("INT", ("-2147483648",), "int", (-(2**31),)),
        Sample("INT UNSIGNED", ("4294967295",), "bigint", (2**32 - 1,)),
        Sample("BIGINT", ("-9223372036854775808",), "bigint", (-(2**63),)),
        Sample("BIGINT UNSIGNED", ("18446744073709551615", "0"), "decimal(20,0)", (2**64 - 1, 0)),
        Sample("BIT(1)", ("b'1'", "b'0'"), "boolean", (True, False)),
        Sample("BIT(64)", ("b'1'", "18446744073709551615"), "decimal(20,0)", (1, 2**64 - 1)),
        Sample("YEAR", ("2024", "1901"), "int", (2024, 1901)),
        Sample(
            "DECIMAL(38,10)",
            ("0.1", f"-{'9' * 28}.{'9' * 10}"),
            "decimal(38,10)",
            (Decimal("0.1"), Decimal(f"-{'9' * 28}.{'9' * 10}")),
        ),
        Sample("DECIMAL", ("12",), "decimal(10,0)", (12,)),
        Sample("FLOAT", ("1.1", "16777217", "1e-30"), "float", (1.100000023841858, 16777216.0, 1.0000000031710769e-30)),
        Sample("FLOAT(7,4) UNSIGNED", ("1.1",), "float", (1.100000023841858,)),
        Sample(
            "DOUBLE",
            ("0.1", "1.7976931348623157e308", "2.2250738585072014e-308"),
            "double",
            (0.1, 1.7976931348623157e308, 2.2250738585072014e-308),
        ),
        Sample("VARCHAR(40)", ("''", "'Ål \U0001f600'", "'trailing  '"), "string", ("", "Ål \U0001f600", "trailing  ")),
        Sample("CHAR(10) CHARACTER SET latin1", ("'Ål'",), "string", ("Ål",)),
        Sample("TEXT CHARACTER SET utf16 COLLATE utf16_bin", ("'aB€'",), "string", ("aB€",)),
        Sample("JSON", ("'{\"a\": 1}'",), "string", ('{"a": 1}',)),
        Sample("ENUM('one', 'it''s')", ("'it''s'",), "string", ("it's",)),
        Sample("SET('a', 'b')", ("'b,a'", "''"), "string", ("a,b", "")),
        Sample(
            "UUID", ("'8f1e8a52-5d1c-4a58-a6d6-0b1f6a2c1d11'",), "string", ("8f1e8a52-5d1c-4a58-a6d6-0b1f6a2c1d11",)
        ),
        Sample("INET6", ("'::ffff:1.2.3.4'",), "string", ("::ffff:1.2.3.4",)),
        Sample("VARBINARY(10)", ("x'00ff'", "''"), "binary", (b"\x00\xff", b"")),
        Sample("BINARY(3)", ("x'61'",), "binary", (b"a\0\0",)),
        Sample("LONGBLOB", ("x'00'",), "binary", (b"\0",)),
        Sample(
            "DATE",
            ("'2024-02-29'", "'0001-01-01'", "'9999-12-31'"),
            "date",
            (date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)),
        ),
        Sample(
            "DATETIME(6)", ("'2024-12-31 23:59:59.000001'",), "timestamp_ntz", (datetime(2024, 12, 31, 23, 59, 59, 1),)
        ),
        Sample("DATETIME", ("'0999-12-31 23:59:59'",), "timestamp_ntz", (datetime(999, 12, 31, 23, 59, 59),)),
        Sample(
            "TIMESTAMP(6) NULL",
            ("'2024-07-01 12:00:00.5'",),
            "timestamp",
            (datetime(2024, 7, 1, 12, 0, 0, 500000, UTC),),
        ),
        Sample("TIME(3)", ("'-100:00:01.5'", "'00:00:00'"), "string", ("-100:00:01.500", "00:00:00.000")),
    )
    refused = ("POINT", "DECIMAL(39,2)", "GEOMETRY")
    drifts: ClassVar = {
        "a column more": ("ALTER TABLE {table} ADD COLUMN more TEXT", "INSERT INTO {table} VALUES (1, 'Oslo', 2, '')"),
        "a column less": (
            "INSERT INTO {table} VALUES (1, 'Oslo', 2)",
            "ALTER TABLE {table} DROP COLUMN id",
            "UPDATE {table} SET city = 'Rome'",
            "DELETE FROM {table}",
            "INSERT INTO {table} VALUES ('Oslo', 2)",
        ),
        "a column renamed": (
            "INSERT INTO {table} VALUES (1, 'Oslo', 2)",
            "ALTER TABLE {table} RENAME COLUMN id TO number",
            "REPLACE INTO {table} VALUES (1, 'Rome', 2)",
        ),
        "a column of another type": (
            "ALTER TABLE {table} MODIFY COLUMN amount DECIMAL(18,3)",
            "INSERT INTO {table} VALUES (1, 'Oslo', 123456789012345.678)",
        ),
        "a longer text": (
            "ALTER TABLE {table} MODIFY COLUMN city VARCHAR(400)",
            "INSERT INTO {table} VALUES (1, REPEAT('Oslo', 100), 2)",
        ),
        "the table renamed": (
            "ALTER TABLE {table} RENAME TO other_{table}",
            "INSERT INTO other_{table} VALUES (1, 'Oslo', 2)",
        ),
        "the table dropped": ("DROP TABLE {table}",),
        "the table made anew": (
            "DROP TABLE {table}",
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))",
        ),
        "truncated": ("TRUNCATE TABLE {table}",),
        "rebuilt": ("OPTIMIZE TABLE {table}",),
    }

    bypasses: ClassVar = frozenset({"the table made anew", "truncated", "rebuilt"})

    def __init__(self, url: str) -> None:
        self.url = url

    def drop(self) -> None:
        """The database, and what capture may have left beside it."""
        self.execute(f"DROP DATABASE IF EXISTS matview_{self.name}", f"DROP DATABASE {self.name}")

    @property
    def name(self) -> str:
        with closing(opened(self.url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT DATABASE()")
            ((name,),) = cursor.fetchall()
            return str(name)

    def beside(self) -> str:
        return f"{self.url}&matview_schema=matview_second"

    def writer(self) -> MariadbWriter:
        return MariadbWriter(self.url)

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def rows(self, table: str, columns: Sequence[str]) -> list[Row]:
        names = ", ".join(self.quote(column) for column in columns)
        with closing(opened(self.url)) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {names} FROM {self.quote(table)}")
            return list(cursor.fetchall())

    def objects(self) -> object:
        with closing(opened(self.url)) as connection, connection.cursor() as cursor:
            found = []
            for query in OBJECTS:
                cursor.execute(query)
                found.append(sorted(cursor.fetchall()))
            return found
