"""Rows that REPLACE deletes are captured, whatever made them stand in the way, and nothing else is."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from tests.sources.lab import net, plus
from tests.sources.sqlite.lab import SqliteLab, SqliteWriter

from matview.sources import connect
from matview.sources.engine import SourceTable


@dataclass(frozen=True, slots=True)
class Case:
    """Statements that make a table, and columns of it that take small numbers."""

    statements: tuple[str, ...]
    columns: tuple[str, ...] = ("id", "a", "b")
    table: str = "t"


TABLES = {
    "integer key and two uniques": Case(
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER UNIQUE)",)
    ),
    "unique pair": Case(("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, UNIQUE (a, b))",)),
    "no key at all": Case(("CREATE TABLE t (id INTEGER, a INTEGER, b INTEGER)",), ("id", "a", "b", "rowid")),
    "a text as key": Case(("CREATE TABLE t (id TEXT PRIMARY KEY, a INTEGER, b INTEGER)",)),
    "a text as key, compared loosely": Case(
        ("CREATE TABLE t (id TEXT COLLATE NOCASE PRIMARY KEY, a TEXT COLLATE RTRIM UNIQUE, b INTEGER)",)
    ),
    "without rowid": Case(
        ("CREATE TABLE t (id INTEGER, a INTEGER, b INTEGER UNIQUE, PRIMARY KEY (a, id)) WITHOUT ROWID",)
    ),
    "without rowid, compared loosely": Case(
        ("CREATE TABLE t (id TEXT COLLATE NOCASE PRIMARY KEY, a INTEGER UNIQUE, b INTEGER) WITHOUT ROWID",)
    ),
    "strict": Case(("CREATE TABLE t (id INTEGER PRIMARY KEY, a INT UNIQUE, b TEXT UNIQUE) STRICT",)),
    "constraints that replace": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY ON CONFLICT REPLACE, a INTEGER UNIQUE ON CONFLICT REPLACE, "
            "b INTEGER NOT NULL ON CONFLICT REPLACE DEFAULT 3 UNIQUE ON CONFLICT REPLACE)",
        )
    ),
    "defaults in place of nulls": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT '2' UNIQUE, b INT NOT NULL DEFAULT -1)",
            "CREATE UNIQUE INDEX u ON t (b, a)",
        )
    ),
    "an index of an expression": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b INTEGER)",
            'CREATE UNIQUE INDEX u ON t (/* a, ( */ lower(a) COLLATE NOCASE DESC, ("b" / 2) ASC) -- WHERE',
        )
    ),
    "an index of a part": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER NOT NULL DEFAULT 1)",
            "CREATE UNIQUE INDEX u ON t (a) WHERE b > 1 AND a IS NOT 'x)'",
        )
    ),
    "generated columns": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, "
            "c INTEGER AS (a / 2) UNIQUE, d INTEGER AS (b + 1) STORED UNIQUE)",
        )
    ),
    "a table called new": Case(
        ('CREATE TABLE "new" (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER UNIQUE)',), table="new"
    ),
    "a table called old": Case(
        ('CREATE TABLE "old" (id INTEGER, a INTEGER, b INTEGER, PRIMARY KEY (id, a)) WITHOUT ROWID',), table="old"
    ),
    "columns called like a row's number": Case(
        ("CREATE TABLE t (rowid INTEGER, oid INTEGER UNIQUE, a INTEGER)",), ("rowid", "oid", "a", "_rowid_")
    ),
    "a trigger that updates the row again": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER)",
            "CREATE TRIGGER stamp AFTER UPDATE ON t BEGIN UPDATE t SET b = coalesce(b, 0) + 1 WHERE id = NEW.id; END",
            "CREATE TRIGGER more AFTER INSERT ON t BEGIN INSERT OR IGNORE INTO t (id, a) VALUES (NEW.id + 2, 2); END",
        )
    ),
    "rows that lose what they refer to": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE REFERENCES t (b) ON DELETE SET NULL, "
            "b INTEGER UNIQUE REFERENCES t (id) ON DELETE SET NULL ON UPDATE CASCADE)",
        )
    ),
    "rows that get other values with others": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER DEFAULT 2 REFERENCES t (id) "
            "ON DELETE SET DEFAULT ON UPDATE SET DEFAULT)",
        )
    ),
    "rows that go with others, without rowid": Case(
        (
            "CREATE TABLE t (id INTEGER, a INTEGER UNIQUE, b INTEGER REFERENCES t (a) ON DELETE CASCADE "
            "ON UPDATE CASCADE, PRIMARY KEY (id)) WITHOUT ROWID",
        )
    ),
    "rows that go with others on a detour": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER REFERENCES u (id) ON DELETE CASCADE)",
            "CREATE TABLE u (id INTEGER PRIMARY KEY REFERENCES t (id) ON DELETE CASCADE)",
            "CREATE TRIGGER there AFTER INSERT ON t BEGIN INSERT OR IGNORE INTO u VALUES (NEW.id); END",
        )
    ),
    "rows that go with others": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER REFERENCES t (id) ON DELETE CASCADE "
            "ON UPDATE SET NULL)",
        )
    ),
    "a trigger that deletes others": Case(
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER)",
            "CREATE TABLE u (id INTEGER)",
            "CREATE TRIGGER there AFTER INSERT ON t BEGIN INSERT INTO u VALUES (NEW.id); END",
            "CREATE TRIGGER back AFTER INSERT ON u BEGIN DELETE FROM t WHERE id = NEW.id + 1; END",
        )
    ),
}
TRANSACTIONS = max(60, int(os.environ.get("MATVIEW_FUZZ_EXAMPLES", "0")))
CONFLICT = ("", "", "OR REPLACE", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ABORT", "OR ROLLBACK")
UPSERT = ("", "", "", "ON CONFLICT DO NOTHING", "ON CONFLICT DO UPDATE SET a = 1")


def value(random: Random, case: Case, column: str) -> str:
    texts = ("'B'", "'b'", "'b '") if f"{column} TEXT" in case.statements[0] else ()
    return random.choice(("NULL", "1", "2", "3", "4", "-1", *texts))


def statement(random: Random, case: Case) -> str:
    """One statement with a conflict clause, over so few values that rows are in the way of others."""
    table, columns = f'"{case.table}"', random.sample(case.columns, random.randint(1, len(case.columns)))
    clause, column = random.choice(CONFLICT), random.choice(case.columns)
    where = f"{case.columns[1]} = {value(random, case, case.columns[1])}"
    match random.randrange(8):
        case 0 | 1 | 2 | 3:
            rows = (f"({', '.join(value(random, case, c) for c in columns)})" for _ in range(random.randint(1, 3)))
            upsert = random.choice(UPSERT) if case.columns == ("id", "a", "b") else ""
            return f"INSERT {clause} INTO {table} ({', '.join(columns)}) VALUES {', '.join(rows)} {upsert}"
        case 4 | 5:
            some = random.choice(("", f" WHERE {where}"))
            return f"UPDATE {clause} {table} SET {column} = {value(random, case, column)}{some}"
        case 6:
            return f"UPDATE {clause} {table} SET {column} = {column} + 1"
    return f"DELETE FROM {table}" + random.choice((f" WHERE {where}", f" WHERE {where}", ""))


def rows(writer: SqliteWriter, table: SourceTable) -> Counter[tuple[object, ...]]:
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    return Counter(writer.connection.execute(f"SELECT {names} FROM {table.name}").fetchall())


@pytest.mark.conforms("M1", "M2")
@pytest.mark.parametrize("recursive", ["on", "off"])
@pytest.mark.parametrize("name", TABLES)
def test_statements_with_conflicts(tmp_path: Path, name: str, recursive: str) -> None:
    """Statement by statement: what was there, and what was captured, make what is there."""
    case, lab = TABLES[name], SqliteLab(tmp_path / "shop.db", "wal")
    lab.execute(*case.statements)
    source = connect(lab.url)
    tables = source.describe([case.table])
    source.install(tables)
    random, writer = Random(name + recursive), lab.writer(recursive_triggers=recursive, foreign_keys="on")
    before, worked = rows(writer, tables[0]), 0
    for _ in range(TRANSACTIONS):
        writer.begin()
        statements = [statement(random, case) for _ in range(random.randint(1, 3))]
        for text in statements:
            with suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
                writer.execute(text)
                worked += 1
        if writer.connection.in_transaction:
            writer.commit()
        captured, now = source.capture(tables), rows(writer, tables[0])
        assert plus(before, net(captured, table=tables[0].name)) == now, statements
        if random.random() < 0.2:
            source.acknowledge(tables, captured.taken)
            before = now
    writer.close()
    assert worked > 30
    assert source.check(tables, installed=True) == []


def test_the_trigger_that_was_made_last_runs_first() -> None:
    """What `triggers.py` rests on."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("CREATE TABLE log (x)")
    for name in "abc":
        connection.execute(f"CREATE TRIGGER {name} AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('{name}'); END")
    connection.execute("INSERT INTO t VALUES (1)")
    assert connection.execute("SELECT x FROM log").fetchall() == [("c",), ("b",), ("a",)]
