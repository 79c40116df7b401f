"""No derived key ever repeats: nulls are equal to one another, and an empty key means one row at most."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from matview.algebra.keys import key_of
from matview.algebra.nodes import Node
from matview.algebra.passes import normalised

from .duck import connect, execute, load
from .fuzzing import EXAMPLES
from .reading import read, read_pairs
from .strategies import Data, data, nodes

CONNECTION = connect()


def assert_tells_apart(node: Node, rows: Data) -> None:
    key = key_of(node)
    if key is None:
        return
    assert set(key) <= set(node.names) and len(set(key)) == len(key)
    load(CONNECTION, rows)
    positions = [node.names.index(name) for name in key]
    seen: Counter[tuple[object, ...]] = Counter()
    for row, times in execute(node, CONNECTION).items():
        seen[tuple(row[i] for i in positions)] += times
    assert all(times == 1 for times in seen.values())


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(nodes(), data())
def test_a_key_never_repeats(node: Node, rows: Data) -> None:
    assert_tells_apart(node, rows)
    assert_tells_apart(normalised(node), rows)


CASES = read_pairs("keys.txt")


@pytest.mark.parametrize(("printed", "key"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_keys(printed: str, key: str) -> None:
    """`-` is a bag; nothing at all is one row at most."""
    expected = None if key == "-" else tuple(name.strip() for name in key.split(",") if name.strip())
    assert key_of(read(printed)) == expected
