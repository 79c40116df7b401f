"""Keys on the driver: distinct, none lost, and none that cannot be sent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from tests.delta.harness import scalar, scan

from matview.algebra.nodes import Aggregate, Change, Filter, Node, Project, Stored
from matview.algebra.scalars import column
from matview.delta.signed import keys
from matview.maintain.near import can_be_sent, keys_at_hand

ROWS = pa.table({"a": [1, 1, None, 2], "b": [5, 5, None, 6]})


def few(leaf: Change | Stored, names: Sequence[str]) -> pa.Table | None:
    return None if isinstance(leaf, Stored) else ROWS.select(list(names))


CHANGED = Change(scan("r"))
FOUND = {
    "a column": (keys(CHANGED, ("a",)), [(1,), (2,), (None,)]),
    "two, one of them twice": (
        Aggregate(Project(CHANGED, (("x", column("b")), ("y", column("a")), ("z", column("a")))), ("x", "y", "z")),
        [(5, 1, 1), (6, 2, 2), (None, None, None)],
    ),
    "of a selection, or some more": (keys(Filter(CHANGED, scalar("a = 2")), ("a",)), [(1,), (2,), (None,)]),
    "of what is computed": (Aggregate(Project(CHANGED, (("x", scalar("a + 1")),)), ("x",)), None),
    "of a sum": (Project(Aggregate(CHANGED, ("a",), (("s", scalar("sum(b)")),)), (("a", column("a")),)), None),
    "of what is elsewhere": (keys(Stored("view", scan("r").fields), ("a",)), None),
    "of a table": (keys(scan("r"), ("a",)), None),
}


@pytest.mark.parametrize("name", FOUND)
def test_keys(name: str) -> None:
    node, expected = FOUND[name]
    assert isinstance(node, Node)
    found = keys_at_hand(node, few)
    if expected is None:
        assert found is None
        return
    assert found is not None and found.column_names == list(node.names)
    assert sorted((tuple(row.values()) for row in found.to_pylist()), key=repr) == sorted(expected, key=repr)


SENT = {
    "days": (pa.array([date(1, 1, 1), None, date(9999, 12, 31)]), pa.array([-719163, 2932897], pa.int32())),
    "times": (
        pa.array([datetime(1, 1, 1, tzinfo=UTC), None, datetime.max.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
        pa.array([-62135596800000001, 253402300800000000], pa.int64()),
    ),
    "texts": (pa.array(["", "Å", None]), pa.array([b"\xff", b"a\xc3"], pa.binary())),
    "numbers": (pa.array([1, None, -(2**63)]), pa.array([], pa.int64())),
}


@pytest.mark.parametrize("kind", SENT)
def test_what_python_has_is_sent(kind: str) -> None:
    fine, strange = SENT[kind]
    odd = (
        pa.Array.from_buffers(fine.type, len(strange), strange.buffers())
        if kind == "texts"
        else strange.cast(fine.type)
    )
    assert can_be_sent(pa.chunked_array([fine])).to_pylist() == [True] * len(fine)
    assert can_be_sent(pa.chunked_array([odd])).to_pylist() == [False] * len(odd)
    assert fine.to_pylist(), "what is sent can be made values of"
