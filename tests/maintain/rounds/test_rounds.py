"""Rounds on real databases: added, followed, stopped and removed; killed anywhere, and every change there once."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.maintain.rounds.asking import ENGINES
from tests.maintain.rounds.shops import rows, same, states
from tests.sources.lab import Lab
from tests.sources.sqlite.lab import SqliteLab
from tests.waiting import wait_until

import matview
from matview.cli.status import group_sentence
from matview.errors import (
    BadDefinition,
    BadValue,
    CannotCapture,
    CaptureBypassed,
    MatviewError,
    SourceDrifted,
    SourceExists,
    SourceTableUnknown,
    SourceUnreachable,
    TableExists,
    UnsupportedStatement,
)
from matview.maintain.rounds.feeder import Feeder
from matview.scheduler import Scheduler
from matview.sources.engine import Problem, Source, SourceTable

JOINED = (
    "CREATE MATERIALIZED VIEW joined MAINTAIN IMMEDIATE AS "
    "SELECT o.id, h.id AS other, o.amount FROM orders o JOIN heap h ON o.city = h.city"
)
COUNTED = "CREATE MATERIALIZED VIEW counted MAINTAIN DEFERRED AS SELECT city, count(*) AS n FROM heap GROUP BY city"
CHANGES = (
    "INSERT INTO orders VALUES (4, 'Oslo', 4.00)",
    "UPDATE orders SET amount = amount + 1 WHERE id = 1",
    "DELETE FROM orders WHERE id = 3",
    "INSERT INTO heap VALUES (1, 'Oslo', 1.50), (7, NULL, NULL)",
    "DELETE FROM heap WHERE id IS NULL",
)


@pytest.mark.conforms("M1")
def test_two_sources_on_one_table_do_not_take_from_each_other(warehouse: matview.Warehouse, lab: Lab) -> None:
    before, url = lab.objects(), lab.url.partition("&matview_schema")[0]
    warehouse.add_source("till", url, {"orders": "orders"})
    warehouse.add_source("again", url, {"orders": "others"})
    lab.together(*CHANGES[:3])
    for name, table in ("till", "orders"), ("again", "others"):
        assert warehouse.ingest(name).rows == 4
        assert rows(warehouse, f"SELECT * FROM {table}") == rows(warehouse, "SELECT * FROM orders")
    same(warehouse, lab, "orders")
    warehouse.remove_source("till")
    warehouse.remove_source("again")
    assert lab.objects() == before


@pytest.mark.conforms("M2", "M8", "M9")
def test_from_beginning_to_end(warehouse: matview.Warehouse, any_lab: Lab) -> None:
    before = any_lab.objects()
    outcome = warehouse.add_source("till", any_lab.url, ["orders", "heap"])
    assert outcome.counts.inserted == 6
    same(warehouse, any_lab, "orders", "heap")
    warehouse.sql(JOINED)
    warehouse.sql(COUNTED)
    assert warehouse.ingest().rounds == 0
    version = warehouse.catalog.version().current_vn

    before_it = [rows(warehouse, f"SELECT * FROM {name}") for name in ("orders", "heap", "joined")]
    session = warehouse.session()
    any_lab.together(*CHANGES)
    done = warehouse.ingest("till")
    assert (done.rounds, done.version, done.failed) == (1, version + 1, {}), "one round, one version"
    same(warehouse, any_lab, "orders", "heap")
    assert warehouse.audit() == {"counted": 0, "joined": 0}
    with session:
        assert [rows(session, f"SELECT * FROM {name}") for name in ("orders", "heap", "joined")] == before_it
    assert warehouse.ingest().rounds == 0, "nothing is taken twice"
    assert set(states(warehouse)) == {"done"}
    (status,) = warehouse.sources(ask=True)
    assert (status.rows, status.waiting_rows, status.lag, status.error) == (done.rows, 0, 0.0, None)

    any_lab.together("INSERT INTO heap VALUES (9, 'x', 1)", "DELETE FROM heap WHERE id = 9")
    assert warehouse.ingest().version is None, "what leaves nothing behind spends no version"

    for text in ("DELETE FROM orders", "INSERT INTO heap VALUES (1, 'x', 1)", "DROP TABLE heap CASCADE"):
        with pytest.raises(UnsupportedStatement, match="fed by source till"):
            warehouse.sql(text)
    with pytest.raises(SourceExists):
        warehouse.add_source("TILL", any_lab.url, {"orders": "again"})
    with pytest.raises(UnsupportedStatement, match="read by"):
        warehouse.remove_source("till")
    warehouse.sql("DROP SOURCE till CASCADE")
    assert (warehouse.tables(), warehouse.sources(), any_lab.objects()) == ([], [], before)


def test_what_cannot_be_is_refused_before_anything_is_touched(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    till.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, __x TEXT)")
    before = till.objects()
    warehouse.sql("CREATE TABLE orders (id INT)")
    refused = {
        TableExists: {"tables": ["orders"]},
        BadDefinition: {"tables": ["odd"]},
        SourceTableUnknown: {"tables": ["nothing"]},
        CannotCapture: {"tables": ["heap"], "mode": "complete"},
    }
    for kind, how in refused.items():
        with pytest.raises(kind):
            warehouse.add_source("till", till.url, **how)  # type: ignore[arg-type]
        assert till.objects() == before, kind
        assert warehouse.sources() == [], kind
    assert [t.name for t in warehouse.tables()] == ["orders"]


# several --------------------------------------------------------------------------------------------------------------


def test_two_rounds_at_once_take_nothing_twice(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """Two who ingest at the same time, again and again, while somebody writes."""
    warehouse.add_source("till", till.url, ["heap"])
    failures: list[MatviewError] = []

    def ingest() -> None:
        try:
            for _ in range(3):
                warehouse.ingest()
        except MatviewError as error:
            failures.append(error)

    threads = [threading.Thread(target=ingest) for _ in range(2)]
    for thread in threads:
        thread.start()
    number = 0
    while any(thread.is_alive() for thread in threads):
        till.execute(f"INSERT INTO heap VALUES ({number}, 'x', 1), ({number}, 'x', 1)")
        number += 1
        threads[0].join(0.05)
    for thread in threads:
        thread.join()
    warehouse.ingest()
    assert failures == []
    same(warehouse, till, "heap")


def test_a_round_that_another_throws_away_is_made_again(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """With one of its own that could not be installed; nothing was lost by it."""
    warehouse.add_source("till", till.url, ["heap"])
    till.execute("INSERT INTO heap VALUES (4, 'x', 4)")

    def discard(step: str) -> None:
        if step == "computed" and states(warehouse) == ["done", "computed"]:
            warehouse.catalog.rounds.discard(2)

    assert warehouse.ingest(step=discard).rounds == 1
    assert states(warehouse) == ["done", "discarded", "done"]
    same(warehouse, till, "heap")


@pytest.mark.conforms("M14", "M18")
def test_the_next_round_is_captured_while_this_one_is_installed(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    warehouse.add_source("till", till.url, ["orders", "heap"])
    staged, captured_next = threading.Event(), threading.Event()

    def step(name: str) -> None:
        if name == "staged":
            staged.set()
            assert captured_next.wait(30), "the install waits for the capture of the next round"

    feeder = Feeder(warehouse.place(step), every=0.02)
    till.execute("INSERT INTO heap VALUES (1, 'first', 1)")
    feeder.start()
    try:
        wait_until(feeder.ready.is_set)
        installer = threading.Thread(target=feeder.install)
        installer.start()
        wait_until(staged.is_set)
        till.execute("INSERT INTO heap VALUES (2, 'second', 2)")
        wait_until(lambda: states(warehouse) == ["done", "computed", "computed"])
        captured_next.set()
        installer.join(60)
        wait_until(lambda: not till_waits(warehouse))
    finally:
        captured_next.set()
        feeder.stop()
    feeder.install()
    same(warehouse, till, "orders", "heap")
    assert set(states(warehouse)) == {"done"}


def till_waits(warehouse: matview.Warehouse) -> int:
    return warehouse.sources(ask=True)[0].waiting_rows or 0


# what stands in the way -----------------------------------------------------------------------------------------------


def test_drift_stops_a_table_and_its_views_and_nothing_else(
    warehouse: matview.Warehouse, till: SqliteLab, tmp_path: Path
) -> None:
    other = SqliteLab(tmp_path / "other.db")
    other.execute("CREATE TABLE places (city VARCHAR(40) NOT NULL PRIMARY KEY, n INTEGER)")
    warehouse.add_source("till", till.url, ["orders", "heap"])
    warehouse.add_source("geo", other.url, ["places"])
    warehouse.sql(JOINED)
    warehouse.sql(COUNTED)
    warehouse.sql("CREATE MATERIALIZED VIEW big AS SELECT id FROM orders WHERE amount > 5")
    before = rows(warehouse, "SELECT * FROM joined")

    till.execute("ALTER TABLE orders ADD COLUMN more TEXT", "INSERT INTO orders VALUES (8, 'Oslo', 8, 'x')")
    till.execute("INSERT INTO heap VALUES (8, 'Oslo', 8)")
    other.execute("INSERT INTO places VALUES ('Oslo', 1)")
    done = warehouse.ingest()
    assert (done.rows, done.failed) == (2, {})
    same(warehouse, till, "heap")
    assert rows(warehouse, "SELECT * FROM places") == {("Oslo", 1): 1}
    assert rows(warehouse, "SELECT * FROM joined") == before, "it would show a state that the source never had"
    assert rows(warehouse, "SELECT n FROM counted WHERE city = 'Oslo'") == {(3,): 1}
    for text in ("REFRESH MATERIALIZED VIEW big", "CREATE MATERIALIZED VIEW v AS SELECT * FROM orders"):
        with pytest.raises(SourceDrifted, match="source check till") as refused:
            warehouse.sql(text)
        assert refused.value.code == "MV706"
    told = [group_sentence(group, time.time()) for group in warehouse.viewgroups() if "big" in group.held_back]
    assert [text for text in told if " but for " in text and "(held back by a stopped table" in text] == told != []
    assert [t.name for t in warehouse.catalog.sources.find("till").going] == ["heap"]
    assert {p.table for p in warehouse.check_source("till")} == {"orders"}
    with pytest.raises(SourceDrifted, match="other columns"):
        warehouse.reload_source("till")

    till.execute("ALTER TABLE orders DROP COLUMN more", "INSERT INTO heap VALUES (9, 'Oslo', 9)")
    warehouse.reload_source("till")
    warehouse.ingest()
    same(warehouse, till, "orders", "heap")
    warehouse.refresh("joined", "big")
    assert set(warehouse.audit().values()) == {0}


@pytest.mark.parametrize("name", ["till", "store"])
def test_complete_where_transactions_cannot_be_told_apart(
    warehouse: matview.Warehouse, request: pytest.FixtureRequest, name: str
) -> None:
    """Refused before anything is touched there."""
    lab: Lab = request.getfixturevalue(name)
    before, steps = lab.objects(), list[str]()
    with pytest.raises(CannotCapture, match="one transaction from the next") as told:
        warehouse.add_source(name, lab.url, ["orders"], mode="complete", step=steps.append)
    assert "STRONG" in told.value.help
    assert (steps, warehouse.sources(), lab.objects()) == ([], [], before)


def test_tables_are_looked_at_when_a_capture_fails(
    warehouse: matview.Warehouse, any_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture refuses drift in its own snapshot: nobody connects once more to ask the same."""
    warehouse.add_source("shop", any_lab.url, ["orders", "heap"])
    looked: list[str] = []
    for engine, name in ENGINES.items():
        monkeypatch.setattr(engine, "check", spied(engine.check, looked, name))
    any_lab.execute("INSERT INTO heap VALUES (8, 'Oslo', 8)")
    assert warehouse.ingest().rows == 1
    assert warehouse.ingest().rows == 0
    assert looked == []
    any_lab.execute("ALTER TABLE orders ADD COLUMN more VARCHAR(9)", "INSERT INTO heap VALUES (9, 'Oslo', 9)")
    assert warehouse.ingest().rows == 1
    assert len(looked) == 1
    assert [table.name for table in warehouse.catalog.sources.find("shop").going] == ["heap"]


def spied(real: Callable[..., list[Problem]], looked: list[str], name: str) -> Callable[..., list[Problem]]:
    def check(self: Source, tables: Sequence[SourceTable], *, installed: bool) -> list[Problem]:
        looked.append(name)
        return real(self, tables, installed=installed)

    return check


def test_a_view_that_cannot_follow_holds_its_own_source_back(
    warehouse: matview.Warehouse, till: SqliteLab, tmp_path: Path
) -> None:
    """Until somebody says that it need not follow at once; nothing is lost meanwhile."""
    other = SqliteLab(tmp_path / "other.db")
    other.execute("CREATE TABLE places (city VARCHAR(40) NOT NULL PRIMARY KEY, n INTEGER)")
    warehouse.add_source("till", till.url, ["orders"])
    warehouse.add_source("geo", other.url, ["places"])
    warehouse.sql("CREATE MATERIALIZED VIEW odd MAINTAIN IMMEDIATE AS SELECT id, 1 / amount AS x FROM orders")
    till.execute("INSERT INTO orders VALUES (4, 'Oslo', 0)")
    other.execute("INSERT INTO places VALUES ('Oslo', 1)")
    done = warehouse.ingest()
    assert (done.rows, list(done.failed)) == (1, ["till"])
    assert done.failed["till"].what.startswith("view odd: ")
    assert rows(warehouse, "SELECT * FROM places") == {("Oslo", 1): 1}
    assert "ALTER MATERIALIZED VIEW odd SET MAINTAIN DEFERRED" in done.failed["till"].help
    warehouse.sql("ALTER MATERIALIZED VIEW odd SET MAINTAIN DEFERRED")
    assert warehouse.ingest().failed == {}
    same(warehouse, till, "orders")
    with pytest.raises(BadValue, match="view odd"):
        warehouse.sql("SELECT * FROM odd")


def test_changes_behind_capture_are_never_installed(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """A replica that is not what it should be (here: somebody else wrote to it) is noticed by what does not fit."""
    warehouse.add_source("till", till.url, ["orders", "heap"])
    with warehouse.transaction() as tx:
        tx.tables["orders"].source = None  # behind everybody's back
        tx.sql("DELETE FROM orders WHERE id = 1")
    till.together("UPDATE orders SET amount = 9 WHERE id = 1", "INSERT INTO heap VALUES (3, 'x', 3)")
    refused: list[MatviewError] = []
    feeder = Feeder(warehouse.place(), tell=lambda fed: refused.append(fed.error) if fed.error else None)
    feeder.once()
    (told,) = refused
    for again in (copy.copy(told), pickle.loads(pickle.dumps(told))):
        assert (str(again), vars(again)) == (str(told), vars(told))
        assert type(again) is CaptureBypassed
    done = warehouse.ingest()
    assert done.rounds == 1
    same(warehouse, till, "heap")
    (error,) = [t.error for t in warehouse.catalog.sources.find("till").tables if t.error]
    assert error.startswith(f"[{CaptureBypassed.code}]")
    assert warehouse.ingest().rounds == 0
    warehouse.reload_source("till")
    same(warehouse, till, "orders", "heap")


def test_a_source_that_is_away_keeps_no_other_back(
    warehouse: matview.Warehouse, till: SqliteLab, tmp_path: Path
) -> None:
    other = SqliteLab(tmp_path / "other.db")
    other.execute("CREATE TABLE places (city VARCHAR(40) NOT NULL PRIMARY KEY, n INTEGER)")
    warehouse.add_source("till", till.url, ["heap"])
    warehouse.add_source("geo", other.url, ["places"])
    other.path.rename(away := other.path.with_suffix(".away"))
    till.execute("INSERT INTO heap VALUES (4, 'x', 4)")
    done = warehouse.ingest()
    assert (done.rounds, list(done.failed)) == (1, ["geo"])
    same(warehouse, till, "heap")
    with pytest.raises(SourceUnreachable):
        warehouse.ingest("geo")
    status = {s.name: s.error for s in warehouse.sources()}
    assert status["till"] is None and "MV701" in (status["geo"] or "")

    heard: list[tuple[str, ...]] = []
    scheduler = Scheduler(warehouse, tell_fed=lambda fed: heard.append(fed.sources))
    till.execute("INSERT INTO heap VALUES (5, 'x', 5)")
    assert not scheduler.once()
    assert heard == [("geo",), ("till",)]
    same(warehouse, till, "heap")

    away.rename(other.path)
    other.execute("INSERT INTO places VALUES ('Oslo', 1)")
    assert warehouse.ingest().failed == {}
    assert rows(warehouse, "SELECT * FROM places") == {("Oslo", 1): 1}
    assert {s.error for s in warehouse.sources()} == {None}
