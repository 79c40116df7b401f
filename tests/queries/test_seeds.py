"""Queries as text, in random worlds: those that failed once, and some new ones every time."""

from pathlib import Path

import pytest

from .cases import Loaded
from .trying import SEEDS, Trial, failing, read

SLICE = 4
"""Queries, each in eight worlds; `make fuzz` tries many more."""


@pytest.fixture(scope="module")
def ducks() -> Loaded:
    return Loaded()


@pytest.mark.parametrize("path", sorted(SEEDS.glob("*.json")), ids=lambda path: path.stem)
def test_what_failed_once(path: Path, ducks: Loaded) -> None:
    sql, world = read(path)
    assert failing(ducks, sql, world) is None


@pytest.mark.conforms("M2", "M15", "M16")
def test_some_seeds() -> None:
    tally = Trial().run(range(SLICE))
    assert not tally.failures, tally.failures[0]
    assert tally.cases > SLICE * 7
    assert tally.moved > tally.cases * 0.2
    assert tally.narrowed > tally.queries * 0.1
