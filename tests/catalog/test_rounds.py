"""Sources and rounds in the catalog: a queue that several processes share, and nothing in it twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from matview.catalog import Catalog
from matview.catalog.records import CatalogChanges
from matview.catalog.source_records import (
    RoundPart,
    RoundRecord,
    SourceChanges,
    SourceRecord,
    SourceTableRecord,
    StoredColumn,
)
from matview.errors import MaintenanceBusy, SourceExists, TransactionOver, UnknownSource

ORDERS = SourceTableRecord(
    "sales.orders", "orders", (StoredColumn("id", "int8", "bigint", nullable=False),), ("id",), "oid 1"
)
VISITS = SourceTableRecord("visits", "seen", (StoredColumn("who", "text", "string"),), identity="oid 2")


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.create(url, versions=2) as made:
        yield made


def source(name: str) -> SourceRecord:
    return SourceRecord(f"id of {name}", name, f"sqlite:///{name}.db", tables=(ORDERS, VISITS))


def commit(catalog: Catalog, changes: SourceChanges) -> int:
    lease = catalog.lease.acquire("test", 60.0, 5.0)
    try:
        vn = catalog.transactions.begin(lease)
        try:
            catalog.transactions.commit(lease, CatalogChanges(sources=changes))
        except BaseException:
            catalog.transactions.abort(lease)
            raise
        catalog.transactions.finish(lease)
        return vn
    finally:
        catalog.lease.release(lease)


def added(catalog: Catalog, *names: str) -> list[SourceRecord]:
    for name in names:
        commit(catalog, SourceChanges(added=(catalog.sources.add(source(name)),)))
    return [catalog.sources.find(name) for name in names]


def fixed(catalog: Catalog, *sources: SourceRecord, taken: int) -> RoundRecord | None:
    parts = [RoundPart(s.id, ("visits",), {"up to": taken}, 1, 2) for s in sources]
    return catalog.rounds.fix(parts, {s.id: s.sequence for s in sources})


def states(catalog: Catalog) -> dict[int, str]:
    return {one.number: one.state for one in catalog.rounds.history()}


# sources --------------------------------------------------------------------------------------------------------------


def test_a_source_is_what_was_added(catalog: Catalog) -> None:
    (shop,) = added(catalog, "Shop")
    assert (shop.state, shop.tables, shop.url) == ("active", (ORDERS, VISITS), "sqlite:///Shop.db")
    assert catalog.sources.find("sHOP") == shop
    with pytest.raises(UnknownSource, match="till"):
        catalog.sources.find("till")
    with pytest.raises(SourceExists):
        catalog.sources.add(source("SHOP"))


def test_an_adding_that_was_cut_short_is_begun_anew(catalog: Catalog) -> None:
    first = catalog.sources.add(source("shop"))
    again = catalog.sources.add(SourceRecord("another", "shop", "sqlite:///other.db", tables=(VISITS,)))
    assert [s.id for s in catalog.sources.list()] == ["another"]
    commit(catalog, SourceChanges(added=(again,)))
    with pytest.raises(SourceExists):
        commit(catalog, SourceChanges(added=(first,)))
    assert catalog.sources.find("shop").url == "sqlite:///other.db"


def test_a_stopped_table_is_told_until_it_is_resumed(catalog: Catalog) -> None:
    (shop,) = added(catalog, "shop")
    catalog.sources.stop(shop.id, "visits", "it drifted")
    catalog.sources.stop(shop.id, "visits", "later reasons do not matter")
    stopped = catalog.sources.find("shop")
    assert [t.error for t in stopped.tables] == [None, "it drifted"]
    assert (stopped.going, stopped.sequence) == ((ORDERS,), shop.sequence + 1)
    commit(catalog, SourceChanges(resumed=((shop.id, VISITS),)))
    assert catalog.sources.find("shop").going == (ORDERS, VISITS)


# rounds ---------------------------------------------------------------------------------------------------------------


@pytest.mark.conforms("M9", "M10")
def test_the_life_of_a_round(catalog: Catalog) -> None:
    shop, till = added(catalog, "shop", "till")
    made = fixed(catalog, shop, till, taken=7)
    assert made is not None and (made.number, made.state) == (1, "fixed")
    assert [part.taken for part in made.parts] == [{"up to": 7}, {"up to": 7}]
    catalog.rounds.computed(1, {shop.id: {"visits": "a file"}})
    assert [dict(p.files) for p in catalog.rounds.pending()[0].parts] == [{"visits": "a file"}, {}]
    vn = commit(catalog, SourceChanges(installed=(1,)))
    assert [(one.state, one.vn) for one in catalog.rounds.pending()] == [("installed", vn)]
    assert catalog.rounds.beginning().besides(shop.id) == [{"up to": 7}], "its delta rows may still be there"
    catalog.rounds.acknowledge(1, shop.id)
    catalog.rounds.acknowledge(1, shop.id)
    catalog.rounds.end(1)
    assert states(catalog) == {1: "installed"}
    assert catalog.rounds.beginning().besides(shop.id) == []
    catalog.rounds.acknowledge(1, till.id)
    catalog.rounds.end(1)
    assert (states(catalog), catalog.rounds.pending()) == ({1: "done"}, ())
    assert [(s.rows, s.transactions) for s in catalog.sources.list()] == [(2, 1), (2, 1)]


def test_a_round_is_installed_once(catalog: Catalog) -> None:
    (shop,) = added(catalog, "shop")
    assert fixed(catalog, shop, taken=1)
    vn = commit(catalog, SourceChanges(installed=(1,)))
    with pytest.raises(TransactionOver):
        commit(catalog, SourceChanges(installed=(1,)))
    assert catalog.version().current_vn == vn, "and the version with it is not there"


def test_who_captured_behind_anothers_back_captures_again(catalog: Catalog) -> None:
    shop, till = added(catalog, "shop", "till")
    assert fixed(catalog, shop, taken=1)
    assert fixed(catalog, shop, taken=2) is None
    assert fixed(catalog, till, taken=2), "another source is another matter"
    (now, _) = catalog.rounds.beginning().sources
    assert fixed(catalog, now, taken=2)
    catalog.sources.stop(shop.id, "visits", "drifted")
    assert fixed(catalog, catalog.sources.find("shop"), taken=3)


def test_with_a_round_those_after_it_are_discarded(catalog: Catalog) -> None:
    (shop,) = added(catalog, "shop")
    for taken in range(3):
        assert fixed(catalog, catalog.sources.find("shop"), taken=taken)
    commit(catalog, SourceChanges(installed=(1,)))
    before = catalog.sources.find("shop")
    assert [one.number for one in catalog.rounds.discard(2)] == [2, 3]
    assert states(catalog) == {1: "installed", 2: "discarded", 3: "discarded"}
    assert catalog.rounds.beginning().besides(shop.id) == [{"up to": 0}]
    assert fixed(catalog, before, taken=9) is None, "what was captured beside them begins in the wrong place"
    with pytest.raises(TransactionOver):
        commit(catalog, SourceChanges(installed=(2,)))


def test_a_first_state_is_installed_with_the_set_that_it_holds(catalog: Catalog) -> None:
    (shop,) = added(catalog, "shop")
    loaded = RoundPart(shop.id, ("visits",), {"up to": 3})
    with pytest.raises(TransactionOver):
        commit(catalog, SourceChanges(loaded=(loaded,), sequences={shop.id: shop.sequence - 1}))
    vn = commit(catalog, SourceChanges(loaded=(loaded,), sequences={shop.id: shop.sequence}))
    assert [(one.state, one.vn) for one in catalog.rounds.pending()] == [("installed", vn)]
    assert catalog.rounds.beginning().besides(shop.id) == [{"up to": 3}]


def test_a_source_that_goes_needs_no_acknowledgement(catalog: Catalog) -> None:
    (shop,) = added(catalog, "shop")
    assert fixed(catalog, shop, taken=1)
    commit(catalog, SourceChanges(installed=(1,), removed=(shop.id,)))
    assert catalog.sources.find("shop").state == "removing"
    assert catalog.rounds.beginning().sources == ()
    catalog.sources.forget(shop.id)
    catalog.rounds.end(1)
    assert (states(catalog), catalog.sources.list()) == ({1: "done"}, ())


def test_rounds_of_others_are_not_discarded(catalog: Catalog) -> None:
    """Only those that take from a source of the one that goes, and those that follow from these."""
    names = ("shop", "till", "web")
    added(catalog, *names)

    def again(*of: str) -> None:
        assert fixed(catalog, *(catalog.sources.find(name) for name in of), taken=1)

    for of in (("shop",), ("till",), ("shop", "web"), ("web",), ("till",)):
        again(*of)
    before = {name: catalog.sources.find(name).sequence for name in names}
    assert [one.number for one in catalog.rounds.discard(1)] == [1, 3, 4]
    assert catalog.sources.find("till").sequence == before["till"], "a capture of it goes on"
    again("shop")
    assert catalog.rounds.discard(1) == (), "it is gone already: whatever came later is none of its business"
    assert [one.number for one in catalog.rounds.pending()] == [2, 5, 6]


def test_a_source_that_is_held_takes_part_in_no_round(catalog: Catalog) -> None:
    """Until its holder lets it go, or is not heard of for too long."""
    (shop,) = added(catalog, "shop")
    catalog.sources.hold(shop.id, "me", 60.0)
    assert catalog.rounds.beginning().sources == ()
    assert fixed(catalog, shop, taken=1) is None, "what was captured before is captured again"
    with pytest.raises(MaintenanceBusy, match="by me"):
        catalog.sources.hold(shop.id, "you", 60.0)
    assert not catalog.sources.renew(shop.id, "you", 60.0)
    catalog.sources.release(shop.id, "you")
    assert catalog.rounds.beginning().sources == ()
    catalog.sources.release(shop.id, "me")
    assert [s.name for s in catalog.rounds.beginning().sources] == ["shop"]
    catalog.sources.hold(shop.id, "me", -1.0)
    assert [s.name for s in catalog.rounds.beginning().sources] == ["shop"], "it is as if it had ended long ago"
    catalog.sources.hold(shop.id, "you", 60.0)


def test_an_adding_is_its_holders(catalog: Catalog) -> None:
    mine = catalog.sources.add(replace(source("shop"), holder="me"), 60.0)
    yours = replace(source("shop"), id="yours", holder="you")
    for attempt in (lambda: catalog.sources.claim("SHOP", "you", 60.0), lambda: catalog.sources.add(yours, 60.0)):
        with pytest.raises(SourceExists, match="somebody is adding"):
            attempt()
    catalog.sources.release(mine.id, "me")
    assert (left := catalog.sources.claim("shop", "you", 60.0)) is not None and left.id == mine.id
    with pytest.raises(SourceExists):
        commit(catalog, SourceChanges(added=(mine,)))
    assert not catalog.sources.renew(mine.id, "me", 60.0), "it is no more ours to clear away"
    commit(catalog, SourceChanges(added=(catalog.sources.add(yours, 60.0),)))
    assert (catalog.sources.find("shop").state, catalog.sources.find("shop").holder) == ("active", None)
    assert not catalog.sources.renew("yours", "you", 60.0)
