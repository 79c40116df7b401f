"""Sets of transactions against sets of numbers."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matview.sources.postgres.sets import Transactions

NUMBERS = st.sets(st.integers(0, 40))


@pytest.mark.conforms("M6")
@pytest.mark.parametrize(
    ("snapshot", "ranges"),
    [
        ("10:10:", ((0, 9),)),
        ("10:20:10,15,19", ((0, 9), (11, 14), (16, 18))),
        ("3:3:", ((0, 2),)),
        ("3:4:3", ((0, 2),)),
        ("3:6:3,4", ((0, 2), (5, 5))),
        ("0:1:0", ()),
    ],
)
def test_what_has_ended_when_a_snapshot_is_taken(snapshot: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert Transactions.finished(snapshot).ranges == ranges


@pytest.mark.conforms("M6")
@given(NUMBERS, st.integers(0, 45))
def test_a_snapshot_and_its_open_transactions(still_open: set[int], end: int) -> None:
    seen = sorted(one for one in still_open if one < end)
    text = f"{seen[0] if seen else end}:{end}:{','.join(map(str, seen))}"
    finished = Transactions.finished(text)
    assert {n for n in range(60) if n in finished} == set(range(end)) - set(seen)


@given(NUMBERS)
def test_there_and_back(numbers: set[int]) -> None:
    made = Transactions.of(numbers)
    assert Transactions.from_taken(json.loads(json.dumps(made.taken()))) == made
    assert {n for n in range(60) if n in made} == numbers


@given(NUMBERS, st.lists(NUMBERS, max_size=3))
def test_without_others(numbers: set[int], others: list[set[int]]) -> None:
    left = Transactions.of(numbers).minus([Transactions.of(other) for other in others])
    assert {n for n in range(60) if n in left} == numbers.difference(*others)


@given(NUMBERS)
def test_the_condition_in_sql(numbers: set[int]) -> None:
    condition = Transactions.of(numbers).condition("value")
    rows = ", ".join(f"({n})" for n in range(60))
    found = sqlite3.connect(":memory:").execute(
        f"WITH t(value) AS (VALUES {rows}) SELECT value FROM t WHERE {condition}"
    )
    assert {value for (value,) in found} == numbers
