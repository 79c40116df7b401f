"""PostgreSQL as the contract sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar

import psycopg
from tests.sources.lab import Lab, Row, Sample, Writer, hashable


class PostgresWriter:
    """A psycopg connection whose transactions begin when told."""

    def __init__(self, url: str) -> None:
        self.connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self.connection.prepare_threshold = None

    def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    def begin(self) -> None:
        self.connection.execute("BEGIN")

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()


def each_trigger(statement: str, of: str = "") -> str:
    """The statement for each of the table's triggers that Matview has made; %I stands for its name."""
    return (
        "DO $do$ DECLARE one name; BEGIN FOR one IN SELECT tgname FROM pg_trigger WHERE tgrelid = '{table}'::regclass "
        f"AND tgname LIKE '~matview\\_{of}%' LOOP EXECUTE format('{statement}', one); END LOOP; END $do$"
    )


class PostgresLab(Lab):
    conflicts = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected)
    samples = (
        Sample("boolean", ("true", "false"), "boolean", (True, False)),
        Sample("smallint", ("-32768", "32767"), "smallint", (-32768, 32767)),
        Sample("integer", ("-2147483648", "2147483647"), "int", (-(2**31), 2**31 - 1)),
        Sample("bigint", ("-9223372036854775808", "9223372036854775807"), "bigint", (-(2**63), 2**63 - 1)),
        Sample("oid", ("4294967295",), "bigint", (2**32 - 1,)),
        Sample("real", ("0.1", "'NaN'", "'-Infinity'"), "float", (0.10000000149011612, "NaN", float("-inf"))),
        Sample("double precision", ("0.1", "5e-324", "'Infinity'"), "double", (0.1, 5e-324, float("inf"))),
        Sample(
            "numeric(38,18)",
            ("12345678901234567890.123456789012345678", "-0.000000000000000001"),
            "decimal(38,18)",
            (Decimal("12345678901234567890.123456789012345678"), Decimal("-0.000000000000000001")),
        ),
        Sample("numeric(5)", ("99999", "-99999"), "decimal(5,0)", (Decimal(99999), Decimal(-99999))),
        Sample("numeric(2,-3)", ("12345",), "decimal(5,0)", (Decimal(12000),)),
        Sample("numeric(3,5)", ("0.00123",), "decimal(5,5)", (Decimal("0.00123"),)),
        Sample(
            "text", ("''", "'a,b\"c'''", "E'line\\nbreak\\r\\ttab'"), "string", ("", "a,b\"c'", "line\nbreak\r\ttab")
        ),
        Sample("text", (r"'\.'", r"'\N'", "'NULL'", "'  '"), "string", (r"\.", r"\N", "NULL", "  ")),
        Sample("varchar(10)", ("'漢字 🙂'", "'NaN'"), "string", ("漢字 🙂", "NaN")),
        Sample("char(5)", ("'ab'", "'  x'"), "string", ("ab   ", "  x  ")),
        Sample("name", ("'pg'",), "string", ("pg",)),
        Sample("bytea", (r"'\x00ff5c'", "''"), "binary", (b"\x00\xff\x5c", b"")),
        Sample("date", ("'0001-01-01'", "'9999-12-31'"), "date", (date(1, 1, 1), date(9999, 12, 31))),
        Sample(
            "timestamp",
            ("'2024-02-29 23:59:59.999999'", "'0001-01-01'", "'9999-12-31 23:59:59.999999'"),
            "timestamp_ntz",
            (datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)),
        ),
        Sample(
            "timestamptz",
            ("'2024-07-01 12:00:00.000001+05:30'",),
            "timestamp",
            (datetime(2024, 7, 1, 6, 30, 0, 1, UTC),),
        ),
        Sample("time", ("'24:00:00'", "'01:02:03.000004'"), "string", ("24:00:00", "01:02:03.000004")),
        Sample("timetz", ("'01:02:03+02'",), "string", ("01:02:03+02",)),
        Sample(
            "interval", ("'1 day'", "'24 hours'", "'-1 mon 2 days'"), "string", ("1 day", "24:00:00", "-1 mons +2 days")
        ),
        Sample(
            "uuid",
            ("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",),
            "string",
            ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",),
        ),
        Sample("json", ('\'{"b":1,  "a":[]}\'',), "string", ('{"b":1,  "a":[]}',)),
        Sample("jsonb", ('\'{"b":1,  "a":1.50}\'', "'null'"), "string", ('{"a": 1.50, "b": 1}', "null")),
        Sample("inet", ("'10.0.0.1/24'",), "string", ("10.0.0.1/24",)),
        Sample("bit varying(8)", ("B'0101'",), "string", ("0101",)),
        Sample("integer[]", ("'{1,NULL,3}'", "'{}'"), "array<int>", ([1, None, 3], [])),
        Sample("text[]", ("ARRAY['a,b', '', NULL, 'q\"x']",), "array<string>", (["a,b", "", None, 'q"x'],)),
        Sample("numeric(10,2)[]", ("'{1.10,NULL}'",), "array<decimal(10,2)>", ([Decimal("1.10"), None],)),
        Sample("jsonb[]", ("ARRAY['{\"a\": 1}'::jsonb]",), "array<string>", (['{"a": 1}'],)),
        Sample("date[]", ("'{2024-01-31}'",), "array<date>", ([date(2024, 1, 31)],)),
        Sample(
            "timestamptz[]",
            ("'{2024-01-31 00:00:00+01}'",),
            "array<timestamp>",
            ([datetime(2024, 1, 30, 23, tzinfo=UTC)],),
        ),
        Sample("double precision[]", ("'{0.1,-Infinity}'",), "array<double>", ([0.1, float("-inf")],)),
        Sample("oid[]", ("'{1,4294967295}'",), "array<bigint>", ([1, 4294967295],)),
        Sample("oidvector", ("'1 2'",), "array<bigint>", ([1, 2],)),
        Sample("boolean[]", ("'{t,f}'",), "array<boolean>", ([True, False],)),
        Sample("bytea[]", (r"ARRAY['\x00ff'::bytea]",), "array<binary>", ([b"\x00\xff"],)),
        Sample("mood", ("'so so'", "'sad'"), "string", ("so so", "sad")),
        Sample("mood[]", ("'{sad}'",), "array<string>", (["sad"],)),
        Sample("price", ("12.50",), "decimal(8,2)", (Decimal("12.50"),)),
        Sample("any_case", ("'Ab'",), "string", ("Ab",)),
    )
    refused = (
        "numeric",
        "numeric(39,2)",
        "money",
        "point",
        "int4range",
        "tsvector",
        "numeric[]",
        "pair",
        "pg_lsn",
        "int4multirange",
        "bpchar",
    )
    drifts: ClassVar[Mapping[str, Sequence[str]]] = {
        "column added": ["ALTER TABLE {table} ADD COLUMN extra int"],
        "column dropped": ["ALTER TABLE {table} DROP COLUMN city"],
        "column renamed": ["ALTER TABLE {table} RENAME COLUMN city TO town"],
        "column retyped": ["ALTER TABLE {table} ALTER COLUMN city TYPE text"],
        "column wider": ["ALTER TABLE {table} ALTER COLUMN amount TYPE numeric(14,2)"],
        "column dropped and added again": [
            "ALTER TABLE {table} DROP COLUMN city",
            "ALTER TABLE {table} ADD COLUMN city varchar(40)",
        ],
        "values computed anew": ["ALTER TABLE {table} ALTER COLUMN amount TYPE numeric(12,2) USING amount + 1"],
        "key dropped": ["ALTER TABLE {table} DROP CONSTRAINT {table}_pkey"],
        "table dropped": ["DROP TABLE {table}"],
        "table renamed": ["ALTER TABLE {table} RENAME TO {table}_old"],
        "table moved": ["CREATE SCHEMA {table}_schema", "ALTER TABLE {table} SET SCHEMA {table}_schema"],
        "table swapped": [
            "ALTER TABLE {table} RENAME TO {table}_old",
            "CREATE TABLE {table} (LIKE {table}_old INCLUDING ALL)",
        ],
        "table dropped and made again": [
            "DROP TABLE {table}",
            "CREATE TABLE {table} (id integer PRIMARY KEY, city varchar(40), amount numeric(12,2))",
        ],
        "triggers disabled": ["ALTER TABLE {table} DISABLE TRIGGER ALL"],
        "triggers of users disabled": ["ALTER TABLE {table} DISABLE TRIGGER USER"],
        "triggers disabled for a while": [
            "ALTER TABLE {table} DISABLE TRIGGER USER",
            "INSERT INTO {table} VALUES (1, 'unseen', 1)",
            each_trigger("ALTER TABLE {table} ENABLE ALWAYS TRIGGER %I"),
        ],
        "trigger dropped": [each_trigger("DROP TRIGGER %I ON {table}", "delete")],
        "not logged": ["ALTER TABLE {table} SET UNLOGGED"],
        "a child": ["CREATE TABLE {table}_child () INHERITS ({table})"],
        "delta table dropped": [
            "DO $$BEGIN EXECUTE (SELECT 'DROP TABLE ' || oid::regclass FROM pg_class "
            "WHERE relname = 'added_' || '{table}'::regclass::oid); END$$",
        ],
        "truncated under an old snapshot": [
            "BEGIN ISOLATION LEVEL REPEATABLE READ; TRUNCATE {table}; COMMIT",
        ],
    }

    bypasses: ClassVar = frozenset(
        {
            *("triggers disabled", "triggers of users disabled", "triggers disabled for a while", "trigger dropped"),
            *("delta table dropped", "truncated under an old snapshot"),
        }
    )

    def __init__(self, database: str, number: int) -> None:
        """A schema of its own in that database, and another for capture."""
        self.users_url = f"{database}&options=-csearch_path%3Dlab_{number}"
        self._user: psycopg.Connection[Any] | None = None
        self.url = f"{self.users_url}&matview_schema=Matview+%22{number}%22"
        self.execute(
            f"CREATE SCHEMA lab_{number}",
            "CREATE TYPE mood AS ENUM ('sad', 'so so')",
            "CREATE TYPE pair AS (a int, b int)",
            "CREATE DOMAIN price AS numeric(8,2) CHECK (VALUE >= 0)",
            'CREATE DOMAIN any_case AS text COLLATE "C"',
        )

    def beside(self) -> str:
        return f"{self.users_url}&matview_schema=second+{'%C3%A9' * 25}"

    def writer(self) -> Writer:
        return PostgresWriter(self.users_url)

    def quote(self, name: str) -> str:
        return psycopg.sql.Identifier(name).as_string(None)

    def rows(self, table: str, columns: Sequence[str]) -> list[Row]:
        names = ", ".join(map(self.quote, columns))
        return [hashable(row) for row in self.asked(f"SELECT {names} FROM {self.quote(table)}")]

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.user.execute(statement)

    def asked(self, query: str) -> list[tuple[Any, ...]]:
        return self.user.execute(query).fetchall()

    @property
    def user(self) -> psycopg.Connection[Any]:
        """One connection for all that needs none of its own."""
        if self._user is None or self._user.closed:
            self._user = psycopg.connect(self.users_url, autocommit=True)
            self._user.prepare_threshold = None
        return self._user

    def close(self) -> None:
        if self._user is not None:
            self._user.close()

    def objects(self) -> object:
        return {
            kind: sorted(self.asked(query))
            for kind, query in {
                "schemas": "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'",
                "relations": "SELECT n.nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                "WHERE nspname !~ '^pg_'",
                "functions": "SELECT pronamespace::regnamespace::text, proname FROM pg_proc",
                "triggers": "SELECT tgrelid::regclass::text, tgname FROM pg_trigger",
                "types": "SELECT typnamespace::regnamespace::text, typname FROM pg_type WHERE typname !~ '^_?pg_toast'",
                "depend": "SELECT count(*)::int FROM pg_depend WHERE classid <> 'pg_class'::regclass",
            }.items()
        }
