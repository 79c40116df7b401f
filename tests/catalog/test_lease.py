"""One holder at a time; tokens grow for ever; who overslept is fenced."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from matview.catalog import Catalog, CatalogChanges, Lease
from matview.errors import BadSetting, LeaseLost, MaintenanceBusy

from .conftest import Hands

FENCED: dict[str, Callable[[Catalog, Lease], object]] = {
    "renew": lambda catalog, lease: catalog.lease.renew(lease, 10),
    "set_versions": lambda catalog, lease: catalog.set_versions(lease, 9),
    "begin": lambda catalog, lease: catalog.transactions.begin(lease),
    "journal": lambda catalog, lease: catalog.transactions.journal(lease, [1]),
    "commit": lambda catalog, lease: catalog.transactions.commit(lease, CatalogChanges()),
    "abort": lambda catalog, lease: catalog.transactions.abort(lease),
    "finish": lambda catalog, lease: catalog.transactions.finish(lease),
    "housekeeping": lambda catalog, lease: catalog.transactions.housekeeping(lease, []),
    "reserve": lambda catalog, lease: catalog.tables.reserve(lease),
    "forget table": lambda catalog, lease: catalog.tables.forget(lease, 1),
    "forget garbage": lambda catalog, lease: catalog.garbage.forget(lease, []),
    "raise_gc_horizon": lambda catalog, lease: catalog.sessions.raise_gc_horizon(lease),
}


def test_one_holder_at_a_time(catalog: Catalog, other: Catalog) -> None:
    lease = catalog.lease.acquire("ann", 60)
    assert other.lease.current() == lease
    with pytest.raises(MaintenanceBusy) as refused:
        other.lease.acquire("bob", 60)
    told = str(refused.value)
    assert "ann" in told and "since 1970-01-12 13:46:40" in told and "till 1970-01-12 13:47:40" in told
    catalog.lease.release(lease)
    assert other.lease.current() is None
    assert other.lease.acquire("bob", 60).token == lease.token + 1


def test_an_expired_lease_can_be_taken(catalog: Catalog, other: Catalog, hands: Hands) -> None:
    lost = catalog.lease.acquire("ann", 60)
    hands.forward(59.9)
    with pytest.raises(MaintenanceBusy):
        other.lease.acquire("bob", 60)
    hands.forward(0.1)
    assert other.lease.acquire("bob", 60).token > lost.token
    with pytest.raises(LeaseLost, match=r"ann.*followed by lease 2 of bob"):
        catalog.lease.renew(lost, 60)


def test_a_clock_that_steps_back_does_not_lengthen_the_lease_of_the_dead(
    catalog: Catalog, other: Catalog, hands: Hands
) -> None:
    dead = catalog.lease.acquire("ann", 60)
    hands.forward(-5)
    with pytest.raises(MaintenanceBusy):
        other.lease.acquire("bob", 60)
    hands.forward(-3600)
    alive = other.lease.acquire("bob", 60)
    with pytest.raises(LeaseLost):
        catalog.lease.renew(dead, 60)
    hands.forward(-3600)
    assert other.lease.renew(alive, 60).expires_at == hands.now + 60
    with pytest.raises(MaintenanceBusy):
        catalog.lease.acquire("ann", 60)


def test_an_expired_lease_that_nobody_took_can_be_renewed(catalog: Catalog, other: Catalog, hands: Hands) -> None:
    lease = catalog.lease.acquire("ann", 60)
    hands.forward(1000)
    renewed = catalog.lease.renew(lease, 60)
    assert (renewed.token, renewed.expires_at) == (lease.token, hands.now + 60)
    with pytest.raises(MaintenanceBusy):
        other.lease.acquire("bob", 60)


@pytest.mark.parametrize("operation", FENCED)
def test_every_write_is_fenced(sqlite_url: str, operation: str) -> None:
    hands = Hands()
    with Catalog.create(sqlite_url, versions=2, clock=hands) as catalog:
        lost = catalog.lease.acquire("ann", 60)
        catalog.transactions.begin(lost)
        hands.forward(60)
        catalog.lease.acquire("bob", 60)
        before = (catalog.version(), catalog.transactions.history(), catalog.lease.current())
        with pytest.raises(LeaseLost):
            FENCED[operation](catalog, lost)
        assert (catalog.version(), catalog.transactions.history(), catalog.lease.current()) == before


def test_a_released_lease_is_worth_nothing(catalog: Catalog) -> None:
    lease = catalog.lease.acquire("ann", 60)
    catalog.lease.release(lease)
    for write in FENCED.values():
        with pytest.raises(LeaseLost, match="was released"):
            write(catalog, lease)


def test_releasing_a_lost_lease_does_nothing(catalog: Catalog, hands: Hands) -> None:
    lost = catalog.lease.acquire("ann", 60)
    hands.forward(60)
    taken = catalog.lease.acquire("bob", 60)
    catalog.lease.release(lost)
    assert catalog.lease.current() == taken
    catalog.lease.release(taken)
    catalog.lease.release(taken)
    assert catalog.lease.current() is None


def test_waiting_ends_in_time(catalog: Catalog, other: Catalog) -> None:
    catalog.lease.acquire("ann", 60)
    began = time.monotonic()
    with pytest.raises(MaintenanceBusy):
        other.lease.acquire("bob", 60, wait=0.3)
    assert 0.3 <= time.monotonic() - began < 8


def test_a_lease_needs_time_to_live(catalog: Catalog) -> None:
    with pytest.raises(BadSetting):
        catalog.lease.acquire("ann", 0)
    with pytest.raises(BadSetting):
        catalog.lease.renew(catalog.lease.acquire("ann", 1), -1)


def test_without_a_given_clock_the_time_is_that_of_the_database(url: str) -> None:
    with Catalog.create(url, versions=2) as catalog:
        lease = catalog.lease.acquire("ann", 60)
        assert abs(lease.acquired_at - time.time()) < 5
        assert abs(catalog.now() - time.time()) < 5
        assert lease.expires_at == pytest.approx(lease.acquired_at + 60)
