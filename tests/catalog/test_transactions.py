"""History and journal of maintenance transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from matview.algebra.schema import Column, Schema
from matview.catalog import Catalog, CatalogChanges, GarbageFile, Lease, NewTable
from matview.errors import MaintenanceBusy, TableExists, TransactionOver, UnknownTable

from .conftest import SALES, Hands


def test_a_transaction_from_begin_to_end(catalog: Catalog, hands: Hands) -> None:
    lease = catalog.lease.acquire("keeper", 60)
    vn = catalog.transactions.begin(lease)
    [active] = catalog.transactions.unfinished()
    assert (active.token, active.vn, active.state, active.holder) == (lease.token, vn, "active", "keeper")
    assert (active.began_at, active.ended_at, active.journal, active.error) == (hands.now, None, (), None)
    catalog.transactions.journal(lease, [3, 1, 3])
    assert [(t.state, t.journal) for t in catalog.transactions.unfinished()] == [("committing", (1, 3))]
    hands.forward(5)
    catalog.transactions.commit(lease, CatalogChanges(summary={"sales": {"inserted": 2}}))
    [tail] = catalog.transactions.unfinished()
    assert (tail.state, tail.ended_at, tail.summary) == ("committed", hands.now, {"sales": {"inserted": 2}})
    catalog.transactions.finish(lease)
    catalog.transactions.finish(lease)
    assert catalog.transactions.unfinished() == []
    assert catalog.transactions.get(lease.token) == catalog.transactions.history(1)[0]
    assert catalog.transactions.get(99) is None


def test_an_aborted_transaction_leaves_the_version_and_its_number_is_used_again(catalog: Catalog) -> None:
    lease = catalog.lease.acquire("keeper", 60)
    assert catalog.transactions.begin(lease) == 2
    catalog.transactions.abort(lease, error="out of \x00 order \ud800", garbage=[GarbageFile(7, "part-0")])
    assert (catalog.version().current_vn, catalog.version().maintenance_active) == (1, False)
    [aborted] = catalog.transactions.history()
    assert (aborted.state, aborted.error) == ("aborted", "out of  order ?")
    assert catalog.garbage.older_than(0) == [GarbageFile(7, "part-0")]
    assert catalog.transactions.unfinished() == []
    catalog.lease.release(lease)
    assert catalog.transactions.begin(catalog.lease.acquire("keeper", 60)) == 2


@pytest.mark.conforms("Q20")
def test_a_successor_repairs_before_it_begins(catalog: Catalog, other: Catalog, hands: Hands) -> None:
    lost = catalog.lease.acquire("ann", 60)
    catalog.transactions.begin(lost)
    catalog.transactions.journal(lost, [4])
    hands.forward(61)
    lease = other.lease.acquire("bob", 60)
    with pytest.raises(MaintenanceBusy, match="ann was left committing"):
        other.transactions.begin(lease)
    [left] = other.transactions.unfinished()
    other.transactions.abort(lease, token=left.token, error="its process died", garbage=[GarbageFile(4, "x")])
    assert other.transactions.begin(lease) == 2
    other.transactions.commit(lease, CatalogChanges())
    assert [(t.token, t.state) for t in other.transactions.history()] == [(2, "committed"), (1, "aborted")]


def test_a_successor_repeats_the_tail(catalog: Catalog, other: Catalog, hands: Hands) -> None:
    lost = catalog.lease.acquire("ann", 60)
    catalog.transactions.begin(lost)
    catalog.transactions.commit(lost, CatalogChanges())
    hands.forward(61)
    lease = other.lease.acquire("bob", 60)
    assert [t.token for t in other.transactions.unfinished()] == [lost.token]
    other.transactions.finish(lease, token=lost.token)
    assert other.transactions.unfinished() == []


def test_one_acquisition_one_transaction(catalog: Catalog) -> None:
    lease = catalog.lease.acquire("keeper", 60)
    catalog.transactions.begin(lease)
    with pytest.raises(TransactionOver):
        catalog.transactions.begin(lease)
    catalog.transactions.commit(lease, CatalogChanges())
    with pytest.raises(TransactionOver):
        catalog.transactions.begin(lease)


def test_what_is_over_is_over(catalog: Catalog) -> None:
    lease = catalog.lease.acquire("keeper", 60)
    with pytest.raises(TransactionOver, match="no maintenance transaction"):
        catalog.transactions.commit(lease, CatalogChanges())
    with pytest.raises(TransactionOver):
        catalog.transactions.finish(lease)
    catalog.transactions.begin(lease)
    with pytest.raises(TransactionOver, match="active, not committed"):
        catalog.transactions.finish(lease)
    catalog.transactions.commit(lease, CatalogChanges())
    too_late: tuple[Callable[[], None], ...] = (
        lambda: catalog.transactions.journal(lease, []),
        lambda: catalog.transactions.commit(lease, CatalogChanges()),
        lambda: catalog.transactions.abort(lease),
    )
    for late in too_late:
        with pytest.raises(TransactionOver, match="is committed"):
            late()
    assert catalog.version().current_vn == 2


@pytest.mark.conforms("Q20")
def test_a_commit_that_fails_changes_nothing(catalog: Catalog, make_table: Callable[..., int], hands: Hands) -> None:
    kept = make_table(catalog, "kept")
    lease = catalog.lease.acquire("keeper", 60)
    new_id = catalog.tables.reserve(lease)
    catalog.transactions.begin(lease)
    changes = CatalogChanges(
        created=(NewTable(new_id, "KEPT", SALES, "d"),), garbage=(GarbageFile(kept, "x"),), next_rid={kept: 9}
    )
    with pytest.raises(TableExists, match="'kept'"):
        catalog.transactions.commit(lease, changes)
    with pytest.raises(UnknownTable):
        catalog.transactions.commit(lease, CatalogChanges(next_rid={kept: 9, 77: 1}))
    assert catalog.version().maintenance_active and catalog.version().current_vn == 2
    assert catalog.garbage.older_than(0) == [] and catalog.tables.by_id(new_id) is None
    found = catalog.tables.by_id(kept)
    assert found is not None and found.next_rid == 0
    catalog.transactions.commit(lease, CatalogChanges(next_rid={kept: 9}))


def test_the_summary_takes_anything(catalog: Catalog, maintain: Callable[..., Lease]) -> None:
    maintain(catalog, CatalogChanges(summary={"schema": Schema((Column("a", "int"),)), "n": 1}))
    [record] = catalog.transactions.history()
    assert record.summary["n"] == 1 and "Column" in str(record.summary["schema"])


def test_history_is_newest_first_and_bounded(catalog: Catalog, maintain: Callable[..., Lease]) -> None:
    for _ in range(4):
        maintain(catalog)
    assert [t.vn for t in catalog.transactions.history(3)] == [5, 4, 3]


def test_housekeeping_needs_no_transaction(catalog: Catalog, make_table: Callable[..., int]) -> None:
    table = make_table(catalog, "t")
    lease = catalog.lease.acquire("folder", 60)
    catalog.transactions.housekeeping(lease, [GarbageFile(table, "a")])
    assert catalog.garbage.older_than(0) == [GarbageFile(table, "a")]
    assert catalog.version().current_vn == 2
