"""The checker of histories finds what is wrong with them."""

from __future__ import annotations

import pytest
from tests.maintain.rounds.consistency import completely, strongly

SOURCES = [[1, 2, 3], [10, 20]]


def total(one: int, other: int) -> int:
    return one + other


@pytest.mark.parametrize(
    ("versions", "explained"),
    [
        ([11, 23], [(0, 0), (2, 1)]),
        ([11, 11, 12, 22, 23], [(0, 0), (0, 0), (1, 0), (1, 1), (2, 1)]),
        ([21, 22], [(0, 1), (1, 1)]),
        ([], []),
        ([11, 14], None),  # no states come to 14
        ([12, 11], None),  # goes back
        ([21, 12], None),  # one goes on while the other goes back
    ],
)
def test_strong(versions: list[int], explained: list[tuple[int, ...]] | None) -> None:
    assert strongly(versions, SOURCES, total) == explained


def test_strong_where_a_version_has_several_explanations() -> None:
    """The view tells only whether a row is there: the same again may be a later state."""
    states = [["", "a", "", "b"]]
    assert strongly(["", "a", "", "b"], states, str) == [(0,), (1,), (2,), (3,)]
    assert strongly(["", "b"], states, str) == [(0,), (3,)]
    assert strongly(["a", "", "a"], states, str) is None


@pytest.mark.parametrize(
    ("versions", "holds"),
    [
        ([11, 12, 13, 23], True),
        ([11, 21, 22, 23], True),
        ([11, 11, 12, 22, 22, 23], True),
        ([11, 13, 23], False),  # leaves a state out
        ([11, 12, 13], False),  # does not come to the end
        ([11, 22, 23], False),  # two at once
        ([12, 13, 23], False),  # begins too late
    ],
)
def test_complete(versions: list[int], holds: bool) -> None:
    assert completely(versions, SOURCES, total) == holds
