"""Reader sessions, and how far garbage collection may go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from matview.catalog import Catalog, CatalogChanges, Lease
from matview.catalog.connect import database
from matview.catalog.horizon import claim_horizon, settle_horizon
from matview.catalog.sessions import Sessions, confirm_session, insert_session
from matview.catalog.store import Store, Writing
from matview.errors import BadSetting

from .conftest import Hands

T = TypeVar("T")


def test_a_session_pins_the_current_version(catalog: Catalog, hands: Hands, maintain: Callable[..., Lease]) -> None:
    maintain(catalog)
    session = catalog.sessions.open("reader", "tuple", 30)
    maintain(catalog)
    assert session.version == 2 and catalog.version().current_vn == 3
    assert catalog.sessions.get(session.id) == session
    assert (session.holder, session.grain, session.ttl, session.opened_at) == ("reader", "tuple", 30, hands.now)
    assert session.closed_at is None and session.reason is None


def test_sessions_end_once(catalog: Catalog, hands: Hands) -> None:
    closed, expired = (catalog.sessions.open("reader", "global", 30) for _ in range(2))
    hands.forward(3)
    catalog.sessions.close(closed.id)
    catalog.sessions.mark_expired(expired.id)
    catalog.sessions.mark_expired(closed.id)
    ended = [catalog.sessions.get(s.id) for s in (closed, expired)]
    assert [(s.reason, s.closed_at) for s in ended if s] == [("closed", hands.now), ("expired", hands.now)]
    assert not catalog.sessions.heartbeat(closed.id) and not catalog.sessions.heartbeat("unknown")
    assert catalog.sessions.get("unknown") is None


def test_a_session_lives_while_its_heart_beats(catalog: Catalog, hands: Hands) -> None:
    session = catalog.sessions.open("reader", "table", 30)
    for _ in range(3):
        hands.forward(29)
        assert catalog.sessions.count_live() == 1
        assert catalog.sessions.heartbeat(session.id)
    hands.forward(30)
    assert catalog.sessions.count_live() == 0
    assert [s.live(hands.now) for s in catalog.sessions.list()] == [False]
    assert catalog.sessions.heartbeat(session.id), "late, but nobody has declared it dead"
    assert catalog.sessions.count_live() == 1


def test_listing(catalog: Catalog, hands: Hands) -> None:
    ids = []
    for _ in range(3):
        ids.append(catalog.sessions.open("reader", "tuple", 30).id)
        hands.forward(1)
    catalog.sessions.close(ids[1])
    assert [s.id for s in catalog.sessions.list()] == [ids[2], ids[0]]
    assert [s.id for s in catalog.sessions.list(open_only=False)] == ids[::-1]
    assert [s.id for s in catalog.sessions.list(open_only=False, limit=1)] == [ids[2]]


def test_a_session_needs_time_to_live(catalog: Catalog) -> None:
    with pytest.raises(BadSetting):
        catalog.sessions.open("reader", "tuple", 0)


@pytest.mark.conforms("Q16")
def test_the_horizon_is_the_least_version_a_session_needs(
    catalog: Catalog, hands: Hands, maintain: Callable[..., Lease]
) -> None:
    first = catalog.sessions.open("reader", "tuple", 1000)
    maintain(catalog)
    second = catalog.sessions.open("reader", "tuple", 30)
    maintain(catalog)
    lease = catalog.lease.acquire("collector", 10_000)
    horizons = [catalog.sessions.raise_gc_horizon(lease)]
    catalog.sessions.close(first.id)
    horizons.append(catalog.sessions.raise_gc_horizon(lease))
    hands.forward(30)
    horizons.append(catalog.sessions.raise_gc_horizon(lease))
    assert horizons == [1, 2, 3]
    dead = catalog.sessions.get(second.id)
    assert dead is not None and dead.reason == "dead"
    assert not catalog.sessions.heartbeat(second.id)
    assert catalog.version().gc_horizon == 3


@pytest.mark.conforms("Q16")
def test_a_session_that_was_slow_to_appear_moves_on(postgres_url: str, maintain: Callable[..., Lease]) -> None:
    """It read currentVN = 1, then garbage collection passed by, then it was seen: it must not stay at 1."""
    passed: list[int] = []

    class SlowStore(Store):
        def write(self, work: Callable[[Writing], T]) -> T:
            def slowly(writing: Writing) -> T:
                result = work(writing)
                if not passed:
                    maintain(catalog)
                    passed.append(catalog.sessions.raise_gc_horizon(catalog.lease.acquire("collector", 60)))
                return result

            return super().write(slowly)

    with Catalog.create(postgres_url, versions=2) as catalog:
        store = SlowStore(database(postgres_url, patience=5))
        opened = Sessions(store).open("reader", "tuple", 60)
        assert passed == [2] and opened.version == 2
        assert [s.id for s in catalog.sessions.list(open_only=False)] == [opened.id], "no trace of the first attempt"
        store.close()


@pytest.mark.conforms("Q16")
def test_a_session_seen_between_claim_and_look_is_kept(postgres_url: str, maintain: Callable[..., Lease]) -> None:
    """It is confirmed while the claim is not yet visible; then the second look must find it."""
    with Catalog.create(postgres_url, versions=2) as catalog:
        engine = database(postgres_url, patience=5).engine
        with engine.connect() as reader, engine.connect() as collector, engine.connect() as later:
            insert_session(_writing(reader), "quick", "reader", "tuple", 60)
            maintain(catalog)
            assert claim_horizon(_writing(collector)) == 2
            reader.commit()
            confirmed = confirm_session(_writing(later), "quick")
            assert confirmed is not None and confirmed.version == 1
            collector.commit()
            assert settle_horizon(_writing(collector)) == 1
        engine.dispose()


def _writing(connection: object) -> Writing:
    return Writing(connection, lambda _: time.time())  # type: ignore[arg-type]


@pytest.mark.conforms("Q16")
def test_no_session_ever_falls_below_the_horizon(url: str) -> None:
    """Sessions open and close while versions advance and garbage is collected, all at full speed."""
    fell, opened, failures = [], [0], []
    done = threading.Event()

    def read(catalog: Catalog) -> None:
        try:
            while not done.is_set():
                session = catalog.sessions.open("reader", "tuple", 60)
                opened[0] += 1
                horizon = catalog.version().gc_horizon
                if session.version < horizon:
                    fell.append((session.version, horizon))
                catalog.sessions.close(session.id)
        except Exception as error:
            failures.append(error)

    with Catalog.create(url, versions=2) as catalog, Catalog.open(url) as other:
        readers = [threading.Thread(target=read, args=(c,)) for c in (catalog, other, other)]
        for thread in readers:
            thread.start()
        began, rounds = time.monotonic(), 0
        while time.monotonic() < began + 0.8 or (min(opened[0], rounds) < 5 and time.monotonic() < began + 10):
            lease = catalog.lease.acquire("keeper", 60)
            catalog.transactions.begin(lease)
            catalog.transactions.commit(lease, CatalogChanges())
            catalog.sessions.raise_gc_horizon(lease)
            catalog.lease.release(lease)
            rounds += 1
        done.set()
        for thread in readers:
            thread.join()
    assert failures == []
    assert fell == []
    assert min(opened[0], rounds) >= 5, "neither readers nor the keeper may starve"
