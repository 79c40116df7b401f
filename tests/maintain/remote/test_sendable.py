"""What cannot be sent along with a question is known."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from matview.maintain.remote.sendable import can_be_sent

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
