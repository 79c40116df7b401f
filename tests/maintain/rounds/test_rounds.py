"""Rounds on real databases: added, followed, stopped and removed; killed anywhere, and every change there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.maintain.rounds.shops import Killed, rows, same, states, stop_at
from tests.sources.lab import Lab
from tests.sources.postgres.lab import PostgresLab
from tests.sources.sqlite.lab import SqliteLab
from tests.waiting import wait_until

import matview
from matview.errors import (
    BadDefinition,
    CannotCapture,
    CaptureBypassed,
    MatviewError,
    SourceDrifted,
    SourceExists,
    SourceRefused,
    SourceTableUnknown,
    SourceUnreachable,
    TableExists,
    UnsupportedStatement,
)
from matview.maintain.rounds import load
from matview.maintain.rounds.feeder import Feeder
from matview.scheduler import Scheduler

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
def test_two_sources_on_one_table_do_not_take_from_each_other(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    before = till.objects()
    warehouse.add_source("till", till.url, {"orders": "orders"})
    warehouse.add_source("again", till.url, {"orders": "others"})
    till.together(*CHANGES[:3])
    for name, table in ("till", "orders"), ("again", "others"):
        assert warehouse.ingest(name).rows == 4
        assert rows(warehouse, f"SELECT * FROM {table}") == rows(warehouse, "SELECT * FROM orders")
    same(warehouse, till, "orders")
    warehouse.remove_source("till")
    warehouse.remove_source("again")
    assert till.objects() == before


def test_a_second_source_on_a_table_of_postgres_is_refused(warehouse: matview.Warehouse, shop: PostgresLab) -> None:
    warehouse.add_source("shop", shop.users_url, {"orders": "orders"})
    with pytest.raises(SourceRefused, match="already exists"):
        warehouse.add_source("again", shop.users_url, {"orders": "others"})
    shop.together(*CHANGES[:3])
    assert warehouse.ingest().rows == 4
    same(warehouse, shop, "orders")


@pytest.mark.conforms("M2", "M8", "M9")
def test_from_beginning_to_end(warehouse: matview.Warehouse, lab: Lab) -> None:
    before = lab.objects()
    outcome = warehouse.add_source("till", lab.url, ["orders", "heap"])
    assert outcome.counts.inserted == 6
    same(warehouse, lab, "orders", "heap")
    warehouse.sql(JOINED)
    warehouse.sql(COUNTED)
    assert warehouse.ingest().rounds == 0
    version = warehouse.catalog.version().current_vn

    before_it = [rows(warehouse, f"SELECT * FROM {name}") for name in ("orders", "heap", "joined")]
    session = warehouse.session()
    lab.together(*CHANGES)
    done = warehouse.ingest("till")
    assert (done.rounds, done.version, done.failed) == (1, version + 1, {}), "one round, one version"
    same(warehouse, lab, "orders", "heap")
    assert warehouse.audit() == {"counted": 0, "joined": 0}
    with session:
        assert [rows(session, f"SELECT * FROM {name}") for name in ("orders", "heap", "joined")] == before_it
    assert warehouse.ingest().rounds == 0, "nothing is taken twice"
    assert set(states(warehouse)) == {"done"}
    (status,) = warehouse.sources(ask=True)
    assert (status.rows, status.waiting_rows, status.lag, status.error) == (done.rows, 0, 0.0, None)

    lab.together("INSERT INTO heap VALUES (9, 'x', 1)", "DELETE FROM heap WHERE id = 9")
    assert warehouse.ingest().version is None, "what leaves nothing behind spends no version"

    for text in ("DELETE FROM orders", "INSERT INTO heap VALUES (1, 'x', 1)", "DROP TABLE heap CASCADE"):
        with pytest.raises(UnsupportedStatement, match="fed by source till"):
            warehouse.sql(text)
    with pytest.raises(SourceExists):
        warehouse.add_source("TILL", lab.url, {"orders": "again"})
    with pytest.raises(UnsupportedStatement, match="read by"):
        warehouse.remove_source("till")
    warehouse.sql("DROP SOURCE till CASCADE")
    assert (warehouse.tables(), warehouse.sources(), lab.objects()) == ([], [], before)


def test_what_cannot_be_is_refused_before_anything_is_touched(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    till.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, __x TEXT)")
    before = till.objects()
    warehouse.sql("CREATE TABLE orders (id INT)")
    refused = {
        TableExists: {"tables": ["orders"]},
        BadDefinition: {"tables": ["odd"]},
        SourceTableUnknown: {"tables": ["nothing"]},
        UnsupportedStatement: {"tables": ["heap"], "replicate": False},
        CannotCapture: {"tables": ["heap"], "mode": "complete"},
    }
    for kind, how in refused.items():
        with pytest.raises(kind):
            warehouse.add_source("till", till.url, **how)  # type: ignore[arg-type]
        assert till.objects() == before, kind
        assert warehouse.sources() == [], kind
    assert [t.name for t in warehouse.tables()] == ["orders"]


# recovery -------------------------------------------------------------------------------------------------------------

CRASHING = """
import os, signal, sys
import matview

def step(name):
    print(name, flush=True)
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

matview.open(sys.argv[1], settings=matview.Settings(lease_ttl=2.0)).ingest(step=step)
"""
WALK = ("fixed", "table heap", "committed", "deleted")


def killed(path: str, step: str) -> None:
    """Another process runs a round, and is killed with -9 at a step of it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CRASHING, path, step]
    crashed = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert crashed.returncode == -signal.SIGKILL, crashed.stderr
    assert crashed.stdout.splitlines()[-1] == step


def leave_installed(warehouse: matview.Warehouse) -> None:
    """A round that is installed, and not acknowledged."""
    with pytest.raises(Killed):
        warehouse.ingest(step=stop_at("installed"))


@pytest.mark.conforms("M10", "M11")
def test_killed(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """With -9, in each state that a round can be in. Every change is there, once: the heap has no key, and would show
    one that is there twice."""
    warehouse.add_source("till", till.url, ["heap"])
    for number, step in enumerate(WALK):
        write_some(till, number)
        if step == "deleted":
            leave_installed(warehouse)
        killed(warehouse.path, step)
        look(warehouse, till, step)


@pytest.mark.conforms("M10", "M11")
def test_ended_at_any_step(warehouse: matview.Warehouse, shop: PostgresLab) -> None:
    """Outside of maintenance transactions nobody catches anything: to be stopped there is to be killed there."""
    warehouse.add_source("shop", shop.url, ["heap"])
    for number, step in enumerate(["captured", "fixed", "computed", "installed", "deleted", "ended"]):
        write_some(shop, number)
        with pytest.raises(Killed):
            warehouse.ingest(step=stop_at(step))
        look(warehouse, shop, step)


def write_some(lab: Lab, number: int) -> None:
    lab.together(
        f"INSERT INTO heap VALUES ({number}, 'Oslo', 1.50), ({number}, 'Oslo', 1.50)",
        f"DELETE FROM heap WHERE id = {number - 2}",
    )


def look(warehouse: matview.Warehouse, lab: Lab, step: str) -> None:
    """After another round everything is as it is at the source, and nothing is left of the one that was cut short."""
    lab.execute(f"INSERT INTO heap VALUES (1000, '{step}', NULL)")
    warehouse.ingest()
    same(warehouse, lab, "heap")
    assert not warehouse.catalog.rounds.pending(), step
    assert not any(Path(warehouse.path, "_rounds").iterdir()), step


def test_the_steps_are_all_of_them(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    warehouse.add_source("till", till.url, ["heap"])
    till.execute("DELETE FROM heap")
    seen: list[str] = []
    warehouse.ingest(step=seen.append)
    within = {"begun", "staged", "journaled", "finished"}  # a transaction's own, walked through in tests/faults
    assert [step for step in seen if step not in within] == [
        *("captured", "fixed", "computed", "table heap", "committed", "installed", "deleted", "ended")
    ]


def test_killed_while_a_source_is_added_or_removed(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    before = till.objects()
    for step in ("capturing", "read"):
        with pytest.raises(Killed):
            warehouse.add_source("till", till.url, ["orders", "heap"], step=stop_at(step))
        assert [s.state for s in warehouse.sources()] == ["adding"]
        till.execute(f"INSERT INTO heap VALUES (5, '{step}', 1)")
    with pytest.raises(Killed):
        warehouse.add_source("till", till.url, ["heap"], step=stop_at("installed"))
    till.execute("INSERT INTO heap VALUES (6, 'after', 1)")
    warehouse.ingest()
    same(warehouse, till, "heap")
    place = warehouse.place(stop_at("dropped"))
    with pytest.raises(Killed):
        load.remove(place, "till")
    assert [s.state for s in warehouse.sources()] == ["removing"]
    with pytest.raises(SourceExists, match="removing"):
        warehouse.add_source("till", till.url, ["heap"])
    warehouse.remove_source("till")
    assert (till.objects(), warehouse.sources(), warehouse.tables()) == (before, [], [])


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
        with pytest.raises(SourceDrifted, match="source check till") as told:
            warehouse.sql(text)
        assert told.value.code == "MV706"
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


def test_changes_behind_capture_are_never_installed(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """A replica that is not what it should be (here: somebody else wrote to it) is noticed by what does not fit."""
    warehouse.add_source("till", till.url, ["orders", "heap"])
    with warehouse.transaction() as tx:
        tx.tables["orders"].source = None  # behind everybody's back
        tx.sql("DELETE FROM orders WHERE id = 1")
    till.together("UPDATE orders SET amount = 9 WHERE id = 1", "INSERT INTO heap VALUES (3, 'x', 3)")
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
