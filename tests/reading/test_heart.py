"""The heart beats often enough for every session, whenever it came."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from matview.catalog import Catalog, url_of_file
from matview.reading.heart import Heart


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.create(url_of_file(tmp_path / "catalog.db"), versions=2) as made:
        yield made


def lives(catalog: Catalog, session_id: str) -> bool:
    record = catalog.sessions.get(session_id)
    return record is not None and record.live(catalog.now())


def test_a_session_that_lives_shorter_than_the_pause(catalog: Catalog) -> None:
    heart = Heart(catalog)
    try:
        heart.add(catalog.sessions.open("reader", "table", 60).id, 60)
        time.sleep(0.05)  # the heart is in its pause of 20 seconds
        short = catalog.sessions.open("reader", "table", 0.3)
        heart.add(short.id, 0.3)
        time.sleep(1.0)
        assert lives(catalog, short.id)
        heart.remove(short.id)
        time.sleep(0.5)
        assert not lives(catalog, short.id)
    finally:
        heart.stop()


def test_a_session_that_was_ended_is_let_go(catalog: Catalog) -> None:
    heart = Heart(catalog)
    ended, other = (catalog.sessions.open("reader", "table", 0.2).id for _ in range(2))
    for session_id in (ended, other):
        heart.add(session_id, 0.2)
    catalog.sessions.close(ended)
    deadline = time.monotonic() + 10
    while heart.sessions != {other}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    began = time.monotonic()
    heart.stop()
    assert time.monotonic() - began < 1


def test_it_stops_though_it_waits_for_long(catalog: Catalog) -> None:
    heart = Heart(catalog)
    heart.add(catalog.sessions.open("reader", "table", 3600).id, 3600)
    began = time.monotonic()
    heart.stop()
    assert time.monotonic() - began < 1
