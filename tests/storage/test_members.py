"""A table of flags, and halving a column that rises, find the rows that hashing finds."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import example, given
from hypothesis import strategies as st

from matview.storage.members import members

KINDS = {pa.int8(): (-128, 127), pa.int16(): (-300, 300), pa.int64(): (2**62, 2**62 + 500)}


@st.composite
def looks(draw: st.DrawFn) -> tuple[pa.Array, list[int], tuple[int, int]]:
    """A column, values, and bounds that hold for the column, or, as another program's might, do not."""
    kind, (least, greatest) = draw(st.sampled_from(sorted(KINDS.items(), key=str)))
    numbers = st.integers(least, greatest)
    column = draw(st.lists(st.none() | numbers, min_size=20, max_size=200))
    values = sorted(draw(st.lists(numbers, max_size=8)))  # one may be named twice
    known = [n for n in column if n is not None] or [least]
    wrong = draw(st.sampled_from([0, 0, 1, 40]))
    return pa.array(column, kind), values, (min(known) + wrong, max(max(known) - wrong, min(known) + wrong))


@given(looks())
@example((pa.array([-128, 127] * 20, pa.int8()), [127], (-128, 127)))
def test_the_same_rows(look: tuple[pa.Array, list[int], tuple[int, int]]) -> None:
    column, known, bounds = look
    values = pa.array(known, column.type)
    assert members(column, values, known, bounds).equals(pc.indices_nonzero(pc.is_in(column, values)))


@given(looks(), st.integers(0, 5))
@example((pa.array([-128] * 500 + [127] * 500, pa.int8()), [-128], (-128, 127)), 0)
def test_the_same_rows_where_they_rise(look: tuple[pa.Array, list[int], tuple[int, int]], skipped: int) -> None:
    """A column of which Arrow has more before and after it."""
    rows, known, _ = look
    longer = pa.array(sorted(n for n in rows.to_pylist() * 10 if n is not None), rows.type)
    column = longer[skipped : max(skipped, len(longer) - skipped)]
    for few in (known, known[:1]):
        values = pa.array(few, column.type)
        found = members(column, values, few, None, rises=True)
        assert found.equals(pc.indices_nonzero(pc.is_in(column, values)))


def test_what_has_no_flags() -> None:
    texts = pa.array(["a", "b", None, "a"])
    assert members(texts, pa.array(["a"]), ["a"], ("a", "b")).to_pylist() == [0, 3]
    with_null = pa.array([1, None, 2])
    assert members(with_null, pa.array([None, 2]), None, (1, 2)).to_pylist() == [1, 2]
