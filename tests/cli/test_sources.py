"""`matview source`, `matview ingest`, and what other verbs say about sources. Needs Spark."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Run, in_child


@pytest.fixture
def till(elsewhere: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(elsewhere / "till.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE sold (id INTEGER PRIMARY KEY, city TEXT)")
        connection.execute("INSERT INTO sold VALUES (1, 'Oslo')")
        yield connection


@pytest.mark.usefixtures("spark")
def test_the_life_of_a_source(empty: str, till: sqlite3.Connection, run: Run) -> None:
    where = ("-w", empty)
    added = run("source", "add", *where, "till", "sqlite:///till.db", "sold=sales")
    assert (added.code, added.out) == (0, "source till added: table sales made, 1 inserted (version 2)\n")
    till.execute("INSERT INTO sold VALUES (2, 'Bergen')")
    listed = json.loads(run("source", "list", *where, "--json").out)
    assert [(s["name"], s["waiting_rows"], s["rows"], s["error"]) for s in listed] == [("till", 1, 0, None)]
    assert run("ingest", *where).out == "1 changed rows of 1 transactions (version 3)\n"
    assert run("ingest", *where, "till").out == "nothing new\n"
    assert " till " in run("status", *where).out
    (told,) = json.loads(run("status", *where, "--json").out)["sources"]
    assert (told["rows"], told["waiting_rows"], told["lag"]) == (1, 0, 0.0)
    assert run("source", "check", *where, "till").code == 0
    assert "sales" in run("sql", *where, "SHOW SOURCES").out
    assert run("sql", *where, "REFRESH SOURCE till").out == "till is up to date\n"

    till.execute("ALTER TABLE sold RENAME COLUMN city TO town")
    till.execute("INSERT INTO sold VALUES (3, 'Voss')")
    assert run("run", *where, "--once", "--nice", "0").code == 0, "what is stopped is no failure of the others"
    checked = run("source", "check", *where, "till")
    assert checked.code == 1 and checked.out.startswith("[MV706] sold has changed: ")
    till.execute("ALTER TABLE sold RENAME COLUMN town TO city")
    assert run("source", "reload", *where, "till").code == 0
    assert run("sql", *where, "--format", "csv", "SELECT count(*) AS n FROM sales").out == "n\n3\n"

    failed = run("ingest", *where, "nowhere")
    assert failed.code == 1 and "MV710" in failed.err
    assert run("source", "remove", *where, "till").code == 0
    assert run("source", "list", *where, "--json").out == "[]\n"


@pytest.mark.usefixtures("spark")
def test_the_tables_of_a_database(empty: str, till: sqlite3.Connection, run: Run) -> None:
    till.execute('CREATE TABLE "more sold" (id INTEGER)')
    assert run("source", "tables", "sqlite:///till.db").out == '"more sold"\nsold\n'
    missing = run("source", "add", "-w", empty, "till", "sqlite:///till.db", "sald")
    assert (missing.code, "MV702" in missing.err, "there are sold," in missing.err) == (1, True, True)


def test_listing_needs_no_spark(empty: str) -> None:
    assert empty
    told = in_child("main(['source', 'list', '-w', 'shop.wh']); print(*({'pyspark', 'pyarrow'} & set(sys.modules)))")
    assert told.splitlines()[-1].strip() == ""


def test_what_is_asked_for_is_said(empty: str, run: Run) -> None:
    asked = run("source", "add", "-w", empty, "till", "sqlite:///till.db")
    assert (asked.code, "which tables?" in asked.err) == (2, True)
