"""Every pass keeps the bag: the same rows as often as before, the same columns; normalising comes to an end."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings

from matview.algebra.keys import key_of
from matview.algebra.nodes import Node
from matview.algebra.passes import PASSES, normalised
from matview.algebra.text import text

from .duck import connect, execute, load
from .fuzzing import EXAMPLES
from .reading import read, read_pairs
from .strategies import Data, data, nodes

CASES = read_pairs("passes.txt")
REWRITES = {f.__name__: f for f in (*PASSES, normalised)}
ROWS: Data = {
    "t": [(1, 1, "x"), (2, 1, None), (3, None, "y"), (4, 2, "x")],
    "u": [(1, 1, 3), (2, 1, 2), (3, None, 1), (4, 9, None), (5, 3, 2)],
    "w": [(1, "x"), (1, "x"), (None, None), (2, "y"), (3, None)],
}
random_cases = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as made:
        yield made


@pytest.mark.parametrize(("title", "before", "after"), CASES, ids=[case[0] for case in CASES])
def test_rewrites(title: str, before: str, after: str, connection: duckdb.DuckDBPyConnection) -> None:
    """A title begins with the name of the pass; what it gives is also executed."""
    node = read(before)
    made = REWRITES[title.partition(":")[0]](node)
    assert text(made) == after
    load(connection, ROWS)
    assert execute(made, connection) == execute(node, connection)


def test_every_pass_has_fixtures() -> None:
    assert {title.partition(":")[0] for title, _, _ in CASES} == set(REWRITES)


@random_cases
@given(nodes(), data())
def test_passes_keep_the_bag(connection: duckdb.DuckDBPyConnection, node: Node, rows: Data) -> None:
    assert_passes_keep(node, rows, connection)


@random_cases
@given(nodes(depth=5, without=("Repeat", "Unnest", "TopK", "Window", "SetOp", "Aggregate")), data())
def test_passes_keep_plain_queries(connection: duckdb.DuckDBPyConnection, node: Node, rows: Data) -> None:
    """Selections, projections and joins over one another, which passes have the most to do with."""
    assert_passes_keep(node, rows, connection)


def assert_passes_keep(node: Node, rows: Data, connection: duckdb.DuckDBPyConnection) -> None:
    load(connection, rows)
    expected = execute(node, connection)
    for name, rewrite in REWRITES.items():
        after = rewrite(node)
        assert_same_columns(node, after)
        if after != node:
            assert execute(after, connection) == expected, name
    assert_settled(normalised(node))


def assert_same_columns(before: Node, after: Node) -> None:
    """Names stay, types where they were known, and the key; what could not be null still cannot."""
    assert after.names == before.names
    assert key_of(before) is None or key_of(after) is not None
    for was, is_ in zip(before.fields, after.fields, strict=True):
        assert is_.type == was.type or not was.type
        assert was.nullable or not is_.nullable


def assert_settled(node: Node) -> None:
    """No pass changes what is normalised."""
    for name, rewrite in REWRITES.items():
        assert rewrite(node) == node, name
