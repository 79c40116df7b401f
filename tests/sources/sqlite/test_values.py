"""SQLite keeps any value in any column: one that cannot be carried is an error that names its row."""

from __future__ import annotations

import pytest
import sqlglot
from tests.sources.contract import captured_from_here
from tests.sources.sqlite.lab import SqliteLab

from matview.errors import TypeNotCarried
from matview.sources import Source

WRONG = {
    "a text for an integer": ("INTEGER", "'seven'"),
    "a fraction for an integer": ("INTEGER", "1.5"),
    "too large for an integer": ("INTEGER", "9223372036854775808"),
    "a blob for a text": ("TEXT", "x'6161'"),
    "a text that is not UTF-8": ("TEXT", "CAST(x'61ff' AS TEXT)"),
    "a text for a blob": ("BLOB", "'aa'"),
    "a number for a blob": ("BLOB", "5"),
    "a text for a number": ("REAL", "'one'"),
    "neither true nor false": ("BOOLEAN", "2"),
    "half true": ("BOOLEAN", "0.5"),
    "more decimals than declared": ("DECIMAL(10,2)", "1.005"),
    "more digits than declared": ("DECIMAL(4,2)", "100"),
    "a sum of binary fractions": ("DECIMAL(10,2)", "0.1 + 0.2"),
    "an infinite decimal": ("DECIMAL(10,2)", "9e999"),
    "a text for a decimal": ("DECIMAL(10,2)", "'1,50'"),
    "no such day": ("DATE", "'2023-02-29'"),
    "a day in short": ("DATE", "'20230228'"),
    "a day as a number": ("DATE", "19000"),
    "a day with a time": ("DATE", "'2024-01-01 00:00:00'"),
    "a time as seconds": ("DATETIME", "1700000000"),
    "a time with a zone": ("DATETIME", "'2024-01-01 00:00:00+01:00'"),
    "a time of nanoseconds": ("DATETIME", "'2024-01-01 00:00:00.123456789'"),
    "no such hour": ("DATETIME", "'2024-01-01 24:00:00'"),
    "a number for a name": ("UUID", "'12'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_value_is_named(lab: SqliteLab, source: Source, what: str) -> None:
    declaration, literal = WRONG[what]
    lab.execute(f"CREATE TABLE odd (id INTEGER PRIMARY KEY, v {declaration})", "INSERT INTO odd VALUES (1, NULL)")
    tables = captured_from_here(source, "odd")
    lab.execute(f"INSERT INTO odd VALUES (42, {literal})")
    named = r"column 'v' of odd, rowid 42\b"
    with source.first_state(tables) as state, pytest.raises(TypeNotCarried, match=named) as caught:
        [list(state.read(part)) for part in state.slices(tables[0], 10)]
    assert declaration in caught.value.help
    with pytest.raises(TypeNotCarried, match=named):
        source.capture(tables)
    query = sqlglot.parse_one("SELECT v FROM odd", dialect="spark")
    taken = {"tables": {"odd": {"added": [0, 1], "deleted": [0, 0]}}}
    with pytest.raises(TypeNotCarried, match="'v'"):
        list(source.evaluate(query, tables, taken, {}))
    lab.execute("DELETE FROM odd WHERE id = 42")
    with pytest.raises(TypeNotCarried, match=named):
        source.capture(tables)
    with source.first_state(tables) as state:
        assert [b.num_rows for part in state.slices(tables[0], 10) for b in state.read(part)] == [1]


def test_a_row_without_rowid_is_named_by_its_key(lab: SqliteLab, source: Source) -> None:
    lab.execute("CREATE TABLE odd (a TEXT, b TEXT, v INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID")
    tables = captured_from_here(source, "odd")
    lab.execute("INSERT INTO odd VALUES ('x', 'y', 'z')")
    with pytest.raises(TypeNotCarried, match="column 'v' of odd, a 'x', b 'y' has str 'z'"):
        source.capture(tables)


KEYS = {
    "CREATE TABLE t (id INTEGER PRIMARY KEY)": ("id",),
    "CREATE TABLE t (id INT PRIMARY KEY)": (),
    "CREATE TABLE t (id INT PRIMARY KEY NOT NULL)": ("id",),
    "CREATE TABLE t (a TEXT, b TEXT, PRIMARY KEY (b, a)) WITHOUT ROWID": ("b", "a"),
    "CREATE TABLE t (a TEXT NOT NULL, b TEXT, PRIMARY KEY (b, a))": (),
    "CREATE TABLE t (a DATETIME NOT NULL PRIMARY KEY)": (),
    "CREATE TABLE t (a DATE NOT NULL PRIMARY KEY)": ("a",),
    "CREATE TABLE t (a TEXT UNIQUE NOT NULL)": (),
}


@pytest.mark.parametrize("statement", KEYS)
def test_a_key_is_one_only_where_it_cannot_be_null_nor_twice(lab: SqliteLab, source: Source, statement: str) -> None:
    lab.execute(statement)
    assert source.describe(["t"])[0].key == KEYS[statement]
