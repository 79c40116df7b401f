"""The Version relation (sections 3 and 4 of the paper)."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from matview.catalog import Catalog, CatalogChanges, Lease, VersionState
from matview.errors import BadSetting, LeaseLost, WarehouseClosed


@pytest.mark.conforms("Q1")
def test_current_vn_is_1_at_the_start(catalog: Catalog) -> None:
    assert catalog.version() == VersionState(1, maintenance_active=False, versions=3, floor=0, gc_horizon=0)


@pytest.mark.conforms("Q1")
def test_maintenance_sets_the_flag_and_moves_the_version(catalog: Catalog, other: Catalog) -> None:
    lease = catalog.lease.acquire("keeper", 60)
    assert catalog.transactions.begin(lease) == 2
    assert (other.version().current_vn, other.version().maintenance_active) == (1, True)
    catalog.transactions.commit(lease, CatalogChanges())
    assert (other.version().current_vn, other.version().maintenance_active) == (2, False)


@pytest.mark.conforms("Q1")
def test_readers_see_the_pair_change_in_one_step(
    catalog: Catalog, other: Catalog, maintain: Callable[..., Lease]
) -> None:
    """Versions and flags are seen in the order (1, False), (1, True), (2, False), ... and never otherwise."""
    seen: list[tuple[int, bool]] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            state = other.version()
            seen.append((state.current_vn, state.maintenance_active))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(15):
        maintain(catalog)
    done.set()
    watcher.join()
    steps = list(dict.fromkeys(seen))
    assert steps == sorted(steps) and len(steps) > 2


@pytest.mark.parametrize("n", [1, 0, -3, 101, 10**9])
def test_neither_fewer_than_two_nor_too_many_versions_can_be(sqlite_url: str, n: int) -> None:
    with pytest.raises(BadSetting):
        Catalog.create(sqlite_url, versions=n)
    assert not Catalog.exists(sqlite_url)


def test_versions_are_only_raised(catalog: Catalog, maintain: Callable[..., Lease]) -> None:
    for _ in range(6):
        maintain(catalog)
    lease = catalog.lease.acquire("keeper", 60)
    assert catalog.set_versions(lease, 3).floor == 0
    raised = catalog.set_versions(lease, 5)
    assert (raised.versions, raised.floor) == (5, 7 - (3 - 1))
    for n in (4, 1):
        with pytest.raises(BadSetting):
            catalog.set_versions(lease, n)
    assert catalog.set_versions(lease, 6).floor == 5, "the floor never goes down"
    assert catalog.version().versions == 6


def test_versions_are_set_under_a_lease(catalog: Catalog) -> None:
    lease = catalog.lease.acquire("keeper", 60)
    catalog.lease.release(lease)
    with pytest.raises(LeaseLost):
        catalog.set_versions(lease, 5)


def test_a_closed_catalog_says_so(catalog: Catalog) -> None:
    catalog.close()
    with pytest.raises(WarehouseClosed):
        catalog.version()
