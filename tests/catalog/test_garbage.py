"""Garbage files, settings and observations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from matview.catalog import Catalog, CatalogChanges, GarbageFile, Lease
from matview.catalog.records import RefreshRecord
from matview.errors import CatalogCorrupt

from .conftest import Hands


def test_garbage_ages_and_is_forgotten(catalog: Catalog, hands: Hands, maintain: Callable[..., Lease]) -> None:
    first, second = GarbageFile(1, "part-1"), GarbageFile(2, "part-2")
    maintain(catalog, CatalogChanges(garbage=(first,)))
    hands.forward(10)
    maintain(catalog, CatalogChanges(garbage=(second,)))
    assert catalog.garbage.older_than(0) == [first, second]
    assert catalog.garbage.older_than(10) == [first]
    assert catalog.garbage.older_than(10.5) == []
    assert catalog.garbage.of(2) == [second]
    assert catalog.garbage.of(3) == []
    lease = catalog.lease.acquire("collector", 60)
    catalog.garbage.forget(lease, [first, GarbageFile(9, "never known")])
    assert catalog.garbage.older_than(0) == [second]


def test_garbage_told_twice_counts_from_the_second_time(catalog: Catalog, hands: Hands) -> None:
    lease = catalog.lease.acquire("folder", 60)
    file = GarbageFile(1, "part-1")
    catalog.transactions.housekeeping(lease, [file, file])
    hands.forward(10)
    catalog.transactions.housekeeping(lease, [file])
    assert catalog.garbage.older_than(1) == []
    assert catalog.garbage.older_than(0) == [file]


def test_settings(catalog: Catalog, other: Catalog, hands: Hands) -> None:
    assert len(catalog.settings.get("warehouse_id") or "") == 36
    assert float(catalog.settings.get("created_at") or 0) == hands.now
    assert catalog.settings.get("colour") is None
    catalog.settings.set("colour", "blue")
    other.settings.set("colour", "grün")
    assert catalog.settings.get("colour") == "grün"


@pytest.mark.conforms("Q13")
def test_observations(catalog: Catalog, hands: Hands) -> None:
    """Two transactions of 5 and 7 seconds with 20 between them, an aborted one in the gap, two sessions."""
    ended = catalog.sessions.open("reader", "tuple", 900)
    for length, outcome in ((5, "commit"), (3, "abort"), (7, "commit")):
        lease = catalog.lease.acquire("keeper", 60)
        catalog.transactions.begin(lease)
        hands.forward(length)
        if outcome == "commit":
            catalog.transactions.commit(lease, CatalogChanges())
        else:
            catalog.transactions.abort(lease, error="no")
        catalog.lease.release(lease)
        hands.forward({5: 11, 3: 6, 7: 0}[length])
    catalog.sessions.close(ended.id)
    catalog.sessions.open("reader", "tuple", 900)
    hands.forward(2)
    seen = catalog.observations()
    assert (seen.durations, seen.gaps) == ((5.0, 7.0), (20.0,))
    assert (seen.session_lengths, seen.session_ages) == ((32.0,), (2.0,))
    assert catalog.observations(limit=1).durations == (7.0,)


def test_history_is_kept_within_a_bound(catalog: Catalog, hands: Hands, maintain: Callable[..., Lease]) -> None:
    stays = catalog.sessions.open("reader", "tuple", 900).id
    for _ in range(5):
        hands.forward(1)
        catalog.sessions.close(catalog.sessions.open("reader", "tuple", 900).id)
        maintain(catalog)
    lease = catalog.lease.acquire("collector", 60)
    assert catalog.sessions.prune(lease, 2) == 3
    assert catalog.transactions.prune(lease, 2) == 3
    assert stays in {s.id for s in catalog.sessions.list(open_only=False)}
    assert [record.vn for record in catalog.transactions.history()] == [6, 5]
    assert catalog.sessions.prune(lease, 2) == catalog.transactions.prune(lease, 2) == 0


def test_refreshes_are_remembered_view_by_view(catalog: Catalog, maintain: Callable[..., Lease]) -> None:
    """A view that is seldom refreshed is not forgotten because of others that often are."""
    maintain(catalog, CatalogChanges(refreshes=(RefreshRecord("rare", 2, "delta", 1.0, 1.0, 1),)))
    for vn in range(3, 63):
        maintain(catalog, CatalogChanges(refreshes=(RefreshRecord("often", vn, "delta", 1.0, 1.0, 1),)))
    lease = catalog.lease.acquire("collector", 60)
    assert catalog.views.prune(lease, 55) == 5
    assert len(catalog.views.refreshes("rare")["rare"]) == 1
    assert [record.vn for record in catalog.views.newest_refreshes(100)] == [*range(62, 7, -1), 2]


def test_what_is_not_finished_is_not_forgotten(catalog: Catalog, url: str, maintain: Callable[..., Lease]) -> None:
    maintain(catalog)
    for _ in range(3):
        lease = catalog.lease.acquire("keeper", 60)
        catalog.transactions.begin(lease)
        catalog.transactions.abort(lease, error="no")
        catalog.lease.release(lease)
    lease = catalog.lease.acquire("keeper", 60)
    catalog.transactions.begin(lease)
    catalog.transactions.commit(lease, CatalogChanges())
    assert catalog.transactions.prune(lease, 0) == 1
    assert [record.token for record in catalog.transactions.unfinished()] == [lease.token]
    assert catalog.version().current_vn == 3
    Catalog.open(url).close()  # it does not contradict itself


def test_a_number_only_rises(catalog: Catalog, other: Catalog) -> None:
    assert catalog.settings.number("retention", 7.0) == 7.0
    for value in (3.0, 9.0, 5.0):
        other.settings.raise_to("retention", value)
    assert catalog.settings.number("retention", 7.0) == 9.0
    catalog.settings.set("retention", "long")
    with pytest.raises(CatalogCorrupt):
        catalog.settings.number("retention", 7.0)
