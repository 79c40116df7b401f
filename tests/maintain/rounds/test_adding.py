"""A source is added once, by one, whatever becomes of the answer."""

from __future__ import annotations

import pytest
from tests.maintain.rounds.shops import same
from tests.sources.mariadb.lab import MariadbLab
from tests.sources.sqlite.lab import SqliteLab

import matview
from matview.errors import CannotCapture, CatalogUnavailable, MatviewError, SourceExists


def follows(warehouse: matview.Warehouse, lab: SqliteLab) -> None:
    """What is written is captured, and taken over."""
    assert [(source.name, source.state) for source in warehouse.sources()] == [("till", "active")]
    lab.execute("INSERT INTO heap VALUES (8, 'after', 8)")
    assert warehouse.ingest().rows == 1
    same(warehouse, lab, "heap")


def test_an_answer_that_is_lost_after_the_commit(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """The source is there, and nothing of it is cleared away."""

    def lose(step: str) -> None:
        if step == "installed":
            raise CatalogUnavailable("the answer was lost")

    with pytest.raises(CatalogUnavailable):
        warehouse.add_source("till", till.url, ["heap"], step=lose)
    follows(warehouse, till)


def test_two_who_add_the_same_source(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """The second is refused, as is one who would remove it, and touches nothing of the first."""

    def second(step: str) -> None:
        if step in ("capturing", "read"):
            with pytest.raises(SourceExists, match="somebody is adding the source till"):
                warehouse.add_source("Till", till.url, ["heap"])
            with pytest.raises(SourceExists):
                warehouse.remove_source("till")

    warehouse.add_source("till", till.url, ["heap"], step=second)
    follows(warehouse, till)


def test_one_who_was_taken_for_dead(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """He wakes up when another has added the source, fails, and touches nothing of it."""

    def overtaken(step: str) -> None:
        if step == "read":
            mine = warehouse.catalog.sources.find("till")
            warehouse.catalog.sources.release(mine.id, mine.holder or "")
            warehouse.add_source("till", till.url, ["heap"])

    with pytest.raises(MatviewError, match=r"already|meanwhile"):
        warehouse.add_source("till", till.url, ["heap"], step=overtaken)
    follows(warehouse, till)


def test_a_password_that_this_process_alone_knows(warehouse: matview.Warehouse, store: MariadbLab) -> None:
    """It is used wherever this process asks the source, and is stored nowhere."""
    login = "CREATE OR REPLACE USER matview_teller@localhost IDENTIFIED BY 'pass-word'"
    store.execute(login, "GRANT ALL ON *.* TO matview_teller@localhost")
    scheme, _, place = store.url.partition("://")
    warehouse.add_source("till", f"{scheme}://matview_teller:pass-word@{place.rpartition('@')[2]}", ["heap"])
    store.execute("INSERT INTO heap VALUES (8, 'after', 8)")
    (status,) = warehouse.sources(ask=True)
    assert (status.error, status.waiting_rows) == (None, 1)
    assert "pass-word" not in status.url
    warehouse.ingest()
    same(warehouse, store, "heap")
    warehouse.remove_source("till")
    store.execute("DROP USER matview_teller@localhost")


def test_what_cannot_be_added_leaves_nothing(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    before = till.objects()
    with pytest.raises(CannotCapture):
        warehouse.add_source("till", till.url, ["heap"], mode="complete")
    assert (till.objects(), warehouse.sources()) == (before, [])
