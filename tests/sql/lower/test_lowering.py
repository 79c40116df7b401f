"""A lowered query, rendered to SQL again, gives the rows that the query's own text gives."""

from __future__ import annotations

from functools import cache

import duckdb
import pytest
from sqlglot import exp

from matview.algebra.nodes import Node, Scan, walk
from matview.sql.lower import lower
from matview.sql.parse import parse_one
from matview.sql.render import query
from matview.versions.text import foreign_text

from .cases import Case, bag, cases
from .tables import database, full, schema_of

CASES = list(cases())


@cache
def parsed(text: str) -> exp.Expr:
    return parse_one(text).query


@cache
def lowered(text: str) -> Node:
    return lower(parsed(text), schema_of)


@pytest.fixture(scope="module")
def filled() -> duckdb.DuckDBPyConnection:
    return full()


@pytest.fixture(scope="module")
def empty() -> duckdb.DuckDBPyConnection:
    return database()


@pytest.mark.parametrize("case", CASES, ids=[case.place for case in CASES])
def test_same_rows(case: Case, filled: duckdb.DuckDBPyConnection, empty: duckdb.DuckDBPyConnection) -> None:
    node = lowered(case.query)
    text = foreign_text(query(node), "duckdb")
    got = bag(filled.execute(text).fetchall())
    if case.rows is not None:
        assert got == bag(case.rows), text
        return
    original = foreign_text(parsed(case.query), "duckdb")
    assert got == bag(filled.execute(original).fetchall()), text
    assert bag(empty.execute(text).fetchall()) == bag(empty.execute(original).fetchall()), text
    assert [n.casefold() for n in node.names] == [c[0].casefold() for c in filled.execute(original).description or []]


def test_broad() -> None:
    assert len(CASES) >= 250
    assert len({case.query for case in CASES}) == len(CASES)


def test_a_scan_has_names_of_its_own() -> None:
    """The first use of a table has `<table>.<column>`, and no two uses share a name, whatever its case."""
    for case in CASES:
        scans = {node for node in walk(lowered(case.query)) if isinstance(node, Scan)}
        names = [name.casefold() for scan in scans for name in scan.names]
        assert len(set(names)) == len(names), case.query
        for scan in scans:
            assert f"{scan.table}.{scan.columns[0]}".casefold() in names, case.query


def test_text_is_left_alone() -> None:
    tree = parse_one("SELECT a.id FROM people a WHERE EXISTS (SELECT 1 FROM sales WHERE person = a.id)").query
    before = tree.sql("spark")
    lower(tree, schema_of)
    assert tree.sql("spark") == before
