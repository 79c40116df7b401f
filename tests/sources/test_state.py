"""Formula (3) on random histories: what the SQL gives is the table after exactly the transactions of the set."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from matview.sources.state import Undoing, columns_of, quoted, restored, state_old, touched, with_states

Row = tuple[int | None, str | None]
ROW = st.tuples(st.sampled_from([1, 2, 3, None]), st.sampled_from(["a", "b", None]))
STEP = st.tuples(st.booleans(), ROW)


def as_json(alias: str, columns: Sequence[str]) -> exp.Expr:
    return exp.Anonymous(this="json_array", expressions=columns_of(alias, columns))


def answer(current: list[Row], added: list[Row], deleted: list[Row], key: Sequence[str]) -> Counter[Row]:
    database = sqlite3.connect(":memory:")
    for name, rows in {"r": current, "plus": added, "minus": deleted}.items():
        database.execute(f'CREATE TABLE {name} (k, "v w")')
        database.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
    columns = ["k", "v w"]
    undoing = Undoing(
        columns,
        key,
        exp.to_table("r"),
        exp.select(*columns_of("d", columns)).from_(exp.to_table("plus", alias="d")),
        exp.select(*columns_of("d", columns)).from_(exp.to_table("minus", alias="d")),
        as_json,
    )
    keys = touched(undoing)
    query = state_old(undoing, keys, restored(undoing, keys))
    return Counter(database.execute(query.sql("sqlite")).fetchall())


@pytest.mark.conforms("M2", "M5")
@given(st.lists(ROW, max_size=5), st.lists(STEP, max_size=8))
def test_a_bag_in_state_old(old: list[Row], steps: list[tuple[bool, Row]]) -> None:
    current, added, deleted = list(old), list[Row](), list[Row]()
    for adds, row in steps:
        if adds:
            current.append(row)
            added.append(row)
        elif row in current:
            current.remove(row)
            deleted.append(row)
    assert answer(current, added, deleted, ()) == Counter(old)


@pytest.mark.conforms("M5")
@given(
    st.dictionaries(st.integers(1, 4), st.sampled_from("ab")),
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from("ab-"))),
)
def test_a_table_with_a_key_in_state_old(old: dict[int, str], steps: list[tuple[int, str]]) -> None:
    """A step sets the value of a key, or deletes it."""
    current, added, deleted = dict(old), list[Row](), list[Row]()
    for key, value in steps:
        if key in current:
            deleted.append((key, current.pop(key)))
        if value != "-":
            current[key] = value
            added.append((key, value))
    assert answer(list(current.items()), added, deleted, ["k"]) == Counter(old.items())


REPLACED = {
    "SELECT x.a FROM t AS x": 'SELECT "x"."a" FROM (SELECT 1 AS a) AS "x"',
    "SELECT t.a FROM t": 'SELECT "t"."a" FROM (SELECT 1 AS a) AS "t"',
    "SELECT a FROM other": 'SELECT "a" FROM "other"',
    "SELECT a FROM s.t": 'SELECT "a" FROM "s"."t"',
    "WITH t AS (SELECT 2 AS a) SELECT a FROM t": 'WITH "t" AS (SELECT 2 AS "a") SELECT "a" FROM "t"',
    "SELECT a FROM u AS y JOIN t ON t.a = y.a": (
        'SELECT "a" FROM "place"."u" AS "y" JOIN (SELECT 1 AS a) AS "t" ON "t"."a" = "y"."a"'
    ),
}


@pytest.mark.parametrize("query", REPLACED)
def test_names_stand_for_states(query: str) -> None:
    tree = sqlglot.parse_one(query)
    assert isinstance(tree, exp.Query)
    states = {
        "t": lambda: sqlglot.parse_one("SELECT 1 AS a", into=exp.Select),
        "u": lambda: exp.Table(this=exp.to_identifier("u", quoted=True), db=exp.to_identifier("place", quoted=True)),
    }
    assert with_states(quoted(tree), states).sql("postgres") == REPLACED[query]
