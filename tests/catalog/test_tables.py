"""Tables by name and version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from matview.catalog import Catalog, CatalogChanges, GarbageFile, Lease, NewTable
from matview.errors import BadDefinition, TableExists, UnknownTable

from .conftest import SALES


def test_a_table_is_seen_from_its_creation_to_its_drop(
    catalog: Catalog, make_table: Callable[..., int], maintain: Callable[..., Lease]
) -> None:
    table_id = make_table(catalog, "Sales")  # version 2
    maintain(catalog)  # version 3
    maintain(catalog, CatalogChanges(dropped=(table_id,)))  # version 4
    seen = [catalog.tables.find("sALES", v) is not None for v in range(1, 6)]
    assert seen == [False, True, True, False, False]
    assert [len(catalog.tables.live(v)) for v in range(1, 6)] == [0, 1, 1, 0, 0]
    found = catalog.tables.by_id(table_id)
    assert catalog.tables.all() == [found]
    assert found is not None
    assert (found.name, found.schema, found.created_vn, found.dropped_vn) == ("Sales", SALES, 2, 4)
    assert (found.directory, found.properties, found.next_rid) == (f"tables/{table_id}", {}, 0)


def test_a_name_can_be_given_anew(
    catalog: Catalog, make_table: Callable[..., int], maintain: Callable[..., Lease]
) -> None:
    """Old sessions see the old table, new ones the new; also when one transaction replaces it."""
    old = make_table(catalog, "t")
    lease = catalog.lease.acquire("keeper", 60)
    new = catalog.tables.reserve(lease)
    catalog.lease.release(lease)
    table = NewTable(new, "T", SALES, "elsewhere", {"cluster_by": ["city"]})
    maintain(catalog, CatalogChanges(dropped=(old,), created=(table,), next_rid={new: 5}))
    before, after = catalog.tables.find("t", 2), catalog.tables.find("t", 3)
    assert before is not None and before.id == old
    assert after is not None and (after.id, after.next_rid, after.properties) == (new, 5, {"cluster_by": ["city"]})


def test_a_table_created_and_dropped_at_once_is_never_seen_but_collected(
    catalog: Catalog, maintain: Callable[..., Lease]
) -> None:
    lease = catalog.lease.acquire("keeper", 60)
    first, second = catalog.tables.reserve(lease), catalog.tables.reserve(lease)
    catalog.lease.release(lease)
    created = (NewTable(first, "t", SALES, "d1"), NewTable(second, "t", SALES, "d2"))
    maintain(catalog, CatalogChanges(created=created, dropped=(first,)))
    assert [t.id for t in catalog.tables.live(2)] == [second]
    assert [t.directory for t in catalog.tables.collectable(2)] == ["d1"]


def test_two_live_tables_of_one_name_cannot_be(catalog: Catalog, make_table: Callable[..., int]) -> None:
    make_table(catalog, "Straße")
    with pytest.raises(TableExists, match="Straße"):
        make_table(catalog, "STRASSE")
    with pytest.raises(TableExists):
        CatalogChanges(created=(NewTable(1, "a", SALES, "d"), NewTable(2, "A", SALES, "e")))


def test_ids_are_reserved_once_and_never_given_again(catalog: Catalog, make_table: Callable[..., int]) -> None:
    lease = catalog.lease.acquire("keeper", 60)
    ids = [catalog.tables.reserve(lease) for _ in range(3)]
    assert ids == [1, 2, 3]
    catalog.lease.release(lease)
    assert make_table(catalog, "t") == 4
    for bad in (0, 4, 99):
        lease = catalog.lease.acquire("keeper", 60)
        catalog.transactions.begin(lease)
        with pytest.raises(BadDefinition, match="reserved"):
            catalog.transactions.commit(lease, CatalogChanges(created=(NewTable(bad, "u", SALES, "d"),)))
        catalog.transactions.abort(lease)
        catalog.lease.release(lease)


def test_only_live_tables_are_dropped(
    catalog: Catalog, make_table: Callable[..., int], maintain: Callable[..., Lease]
) -> None:
    table_id = make_table(catalog, "t")
    maintain(catalog, CatalogChanges(dropped=(table_id,)))
    with pytest.raises(UnknownTable):
        maintain(catalog, CatalogChanges(dropped=(table_id,)))


def test_row_identities_only_advance(
    catalog: Catalog, make_table: Callable[..., int], maintain: Callable[..., Lease]
) -> None:
    table_id = make_table(catalog, "t")
    for given, kept in ((2**40, 2**40), (7, 2**40), (2**40 + 1, 2**40 + 1)):
        maintain(catalog, CatalogChanges(next_rid={table_id: given}))
        found = catalog.tables.by_id(table_id)
        assert found is not None and found.next_rid == kept


@pytest.mark.conforms("Q16")
def test_a_dropped_table_is_collected_when_no_session_can_see_it(
    catalog: Catalog, make_table: Callable[..., int], maintain: Callable[..., Lease]
) -> None:
    table_id = make_table(catalog, "t")
    reader = catalog.sessions.open("reader", "table", 60)
    maintain(catalog, CatalogChanges(dropped=(table_id,), garbage=(GarbageFile(table_id, "part-0"),)))
    lease = catalog.lease.acquire("collector", 60)
    assert catalog.tables.collectable(catalog.sessions.raise_gc_horizon(lease)) == []
    with pytest.raises(UnknownTable):
        catalog.tables.forget(lease, table_id)
    catalog.sessions.close(reader.id)
    assert [t.id for t in catalog.tables.collectable(catalog.sessions.raise_gc_horizon(lease))] == [table_id]
    catalog.tables.forget(lease, table_id)
    assert catalog.tables.by_id(table_id) is None and catalog.garbage.older_than(0) == []


def test_definitions_refuse_to_be_wrong() -> None:
    with pytest.raises(BadDefinition):
        NewTable(1, "", SALES, "d")
    with pytest.raises(BadDefinition):
        CatalogChanges(next_rid={1: -1})
    with pytest.raises(BadDefinition):
        CatalogChanges(created=(NewTable(1, "a", SALES, "d"), NewTable(1, "b", SALES, "e")))
