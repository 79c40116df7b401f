"""What is remembered is bounded, and may be asked for by many at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest

from matview.remembered import Remembered, cached_property


@dataclass(frozen=True)
class Key:
    """Threads may take turns whenever it is compared."""

    number: int


@pytest.fixture
def taking_turns() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("taking_turns")
def test_many_threads_and_little_room() -> None:
    """Whatever the others push out meanwhile, each gets what it asked for."""
    known = Remembered[int](2)
    ready = threading.Barrier(4)

    def ask(_: int) -> list[int]:
        ready.wait()
        return [known.get(Key(number % 3), partial(int, number % 3)) for number in range(20_000)]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(ask, range(4)):
            assert found == [number % 3 for number in range(20_000)]


def test_the_last_ones_are_kept() -> None:
    known, made = Remembered[str](2), list[str]()

    def make(name: str) -> str:
        made.append(name)
        return name

    for name in ("a", "b", "a", "c", "a", "b"):
        assert known.get(name, partial(make, name)) == name
    assert made == ["a", "b", "c", "b"]


class Meeting:
    """Its place is told once both have begun to look for theirs."""

    def __init__(self, both: threading.Barrier) -> None:
        self.both = both
        self.made = 0

    @cached_property
    def place(self) -> object:
        """Where."""
        self.made += 1
        self.both.wait(10)
        return object()


def test_a_property_of_one_does_not_wait_for_that_of_another() -> None:
    """As functools.cached_property of Python 3.11 does: trees walked by two threads in different order stood still."""
    both = threading.Barrier(2)
    meetings = [Meeting(both), Meeting(both)]
    with ThreadPoolExecutor(2) as pool:
        places = list(pool.map(lambda meeting: meeting.place, meetings))
    assert places[0] is not places[1]
    assert [meeting.place for meeting in meetings] == places
    assert [meeting.made for meeting in meetings] == [1, 1]


def test_two_who_ask_at_once_get_the_same() -> None:
    meeting = Meeting(threading.Barrier(2))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: meeting.place, range(2))
    assert first is second
    assert Meeting.place.__doc__ == "Where."


def test_what_is_not_worth_it_is_made_each_time() -> None:
    known, made = Remembered[int](2, lambda number: number < 10), []

    def asked(number: int) -> int:
        return known.get(number, lambda: made.append(number) or number)

    assert [asked(5), asked(5), asked(50), asked(50)] == [5, 5, 50, 50]
    assert made == [5, 50, 50]
