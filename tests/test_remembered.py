"""What is remembered is bounded, and may be asked for by many at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest

from matview.remembered import Remembered


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
