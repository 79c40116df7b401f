from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matview.errors import SourceTableUnknown
from matview.sources.names import joined, split


@pytest.mark.parametrize(
    ("text", "parts"),
    {
        "orders": ("orders",),
        "sales.orders": ("sales", "orders"),
        '"a.b"."c ""d"""': ("a.b", 'c "d"'),
        "MixedCase": ("MixedCase",),
        "with space": ("with space",),
        "ünï.çøde": ("ünï", "çøde"),
    }.items(),
)
def test_parts(text: str, parts: tuple[str, ...]) -> None:
    assert split(text) == parts
    assert split(joined(*parts)) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", '"a', '"a"b', 'a"b', '""'])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(SourceTableUnknown):
        split(text)


@given(st.lists(st.text("ab.\"'` \\é漢😀\n", min_size=1), min_size=1, max_size=3))
def test_any_name_there_and_back(parts: list[str]) -> None:
    assert split(joined(*parts)) == tuple(parts)
