"""The heart beats often enough for every session, whenever it came."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_until

from matview.catalog import Catalog, url_of_file
from matview.reading.heart import Heart


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.create(url_of_file(tmp_path / "catalog.db"), versions=2) as made:
        yield made


def lives(catalog: Catalog, session_id: str) -> bool:
    record = catalog.sessions.get(session_id)
    return record is not None and record.live(catalog.now())


def heard_of(catalog: Catalog, session_id: str) -> float:
    record = catalog.sessions.get(session_id)
    assert record is not None
    return record.heartbeat_at


def pauses() -> bool:
    """Is the heart's thread between two beats?"""
    thread = next(thread for thread in threading.enumerate() if thread.name == "matview-heart")
    assert thread.ident is not None
    return sys._current_frames()[thread.ident].f_code.co_name == "wait"


def test_a_session_that_lives_shorter_than_the_pause(catalog: Catalog) -> None:
    heart = Heart(catalog)
    try:
        heart.add(catalog.sessions.open("reader", "table", 60).id, 60)
        wait_until(pauses)  # for 20 seconds
        short = catalog.sessions.open("reader", "table", 0.2)
        heart.add(short.id, 0.2)
        wait_until(lambda: heard_of(catalog, short.id) > short.opened_at + 0.2, seconds=10)
        heart.remove(short.id)
        wait_until(lambda: not lives(catalog, short.id), seconds=10)
    finally:
        heart.stop()


def test_a_session_that_was_ended_is_let_go(catalog: Catalog) -> None:
    heart = Heart(catalog)
    ended, other = (catalog.sessions.open("reader", "table", 0.2).id for _ in range(2))
    for session_id in (ended, other):
        heart.add(session_id, 0.2)
    catalog.sessions.close(ended)
    wait_until(lambda: heart.sessions == {other})
    began = time.monotonic()
    heart.stop()
    assert time.monotonic() - began < 1


def test_it_stops_though_it_waits_for_long(catalog: Catalog) -> None:
    heart = Heart(catalog)
    heart.add(catalog.sessions.open("reader", "table", 3600).id, 3600)
    began = time.monotonic()
    heart.stop()
    assert time.monotonic() - began < 1
