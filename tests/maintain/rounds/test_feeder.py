"""`matview run` over sources: rounds without end, whatever fails for a while."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.maintain.rounds.shops import Killed, same, states, stop_at
from tests.sources.sqlite.lab import SqliteLab
from tests.waiting import wait_until

import matview
from matview.errors import CatalogUnavailable, MaintenanceBusy, TransactionOver
from matview.maintain.backoff import Backoff
from matview.maintain.rounds.feeder import Fed, Feeder
from matview.maintain.rounds.steps import evaluate, install, query_transactions, waiting
from matview.scheduler import Scheduler


def places(tmp_path: Path, name: str) -> SqliteLab:
    lab = SqliteLab(tmp_path / f"{name}.db")
    lab.execute(f"CREATE TABLE {name} (id INTEGER NOT NULL PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))")
    return lab


def leave_waiting(warehouse: matview.Warehouse, lab: SqliteLab, number: int) -> None:
    """A round that another process has fixed, and not installed."""
    lab.execute(f"INSERT INTO heap VALUES ({number}, 'left', 1)")
    evaluate(warehouse.place(), query_transactions(warehouse.place(), ["till"]))


def within(seconds: float, work: Any) -> None:
    """The work, in a thread of its own, so that one that never ends fails the test."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"not within {seconds:g} s"


def test_once_takes_over_what_was_left_behind(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """However many rounds wait: whoever installs them is the one who would wait for room."""
    warehouse.add_source("till", till.url, ["heap"])
    for number in range(2):
        leave_waiting(warehouse, till, number)
    till.execute("INSERT INTO heap VALUES (9, 'new', 1)")
    scheduler = Scheduler(warehouse)
    within(60, scheduler.once)
    same(warehouse, till, "heap")
    assert set(states(warehouse)) == {"done"}


def test_once_over_many_sets_of_sources(warehouse: matview.Warehouse, tmp_path: Path) -> None:
    labs = {name: places(tmp_path, name) for name in ("a", "b", "c")}
    for name, lab in labs.items():
        warehouse.add_source(name, lab.url, [name])
        lab.execute(f"INSERT INTO {name} VALUES (1, 'x', 1)")
    scheduler = Scheduler(warehouse)
    scheduler.feeder._apart |= set(labs)  # each by itself, as after a round that could not be installed
    within(60, scheduler.once)
    for name, lab in labs.items():
        same(warehouse, lab, name)


def test_a_round_that_another_has_discarded_leaves_no_transaction(
    warehouse: matview.Warehouse, till: SqliteLab
) -> None:
    """Although nothing of it was to be installed, and the catalog alone would have been told."""
    warehouse.add_source("till", till.url, ["heap"])
    till.together("INSERT INTO heap VALUES (9, 'x', 1)", "DELETE FROM heap WHERE id = 9")
    with pytest.raises(Killed):
        warehouse.ingest(step=stop_at("computed"))
    (number,) = (one.number for one in waiting(warehouse.place()))

    def discard(step: str) -> None:
        if step == "staged":
            warehouse.catalog.rounds.discard(number)

    installed = install(warehouse.place(discard), {})
    assert installed is not None and isinstance(installed.error, TransactionOver)
    assert warehouse.catalog.lease.current() is None
    assert not warehouse.catalog.version().maintenance_active


def test_changes_in_hand_go_with_their_rounds(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """Also where somebody else installs them."""
    warehouse.add_source("till", till.url, ["heap"])
    feeder = Feeder(warehouse.place())
    for number in range(3):
        till.execute(f"INSERT INTO heap VALUES ({number}, 'x', 1)")
        assert feeder.capture()
        assert len(feeder._in_hand) == 1
        warehouse.ingest()


def test_an_install_that_had_to_wait_is_tried_again_soon(spark: Any, tmp_path: Path, till: SqliteLab) -> None:
    with matview.open(tmp_path / "busy", spark=spark, settings=matview.Settings(lease_wait=0.1)) as warehouse:
        warehouse.add_source("till", till.url, ["heap"])
        heard: list[Fed] = []
        scheduler = Scheduler(warehouse, tell_fed=heard.append, ingest_every=60.0)
        till.execute("INSERT INTO heap VALUES (5, 'x', 5)")
        stop = threading.Event()
        running = threading.Thread(target=scheduler.run, args=(stop,))
        with warehouse.transaction():
            running.start()
            wait_until(lambda: any(isinstance(fed.error, MaintenanceBusy) for fed in heard))
        try:
            wait_until(lambda: any(fed.installed for fed in heard), 20.0)
        finally:
            stop.set()
            running.join()
        same(warehouse, till, "heap")


class Away:
    """A catalog that does not answer for a while."""

    def __init__(self, warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = False
        store = warehouse.catalog._store
        for name in ("_read_once", "_write_once"):
            monkeypatch.setattr(store, name, self._unless_away(getattr(store, name)))

    def _unless_away(self, real: Any) -> Any:
        def asked(*given: Any) -> Any:
            if self.now:
                raise CatalogUnavailable("it is away")
            return real(*given)

        return asked


def test_a_catalog_that_is_away_for_a_while(
    warehouse: matview.Warehouse, till: SqliteLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither thread ends; both go on when it is back."""
    warehouse.add_source("till", till.url, ["heap"])
    away, stop, told = Away(warehouse, monkeypatch), threading.Event(), list[object]()
    scheduler = Scheduler(warehouse, told.append, ingest_every=0.1, tell_fed=told.append)
    running = threading.Thread(target=scheduler.run, args=(stop,))
    running.start()
    try:
        away.now = True
        wait_until(lambda: len(told) >= 3)
        away.now = False
        till.execute("INSERT INTO heap VALUES (5, 'x', 5)")
        wait_until(lambda: any(isinstance(fed, Fed) and fed.installed for fed in told), 60.0)
    finally:
        away.now = False
        stop.set()
        running.join()
    same(warehouse, till, "heap")


def test_what_ends_the_capture_ends_the_run(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """With what it ended of, and not unnoticed."""
    warehouse.add_source("till", till.url, ["heap"])

    def tell(fed: Fed) -> None:
        raise BrokenPipeError("nobody listens")

    till.path.rename(till.path.with_suffix(".away"))
    warehouse.place().connections.close()
    scheduler = Scheduler(warehouse, tell_fed=tell)
    caught: list[BaseException] = []

    def run() -> None:
        try:
            scheduler.run(threading.Event())
        except BrokenPipeError as error:
            caught.append(error)

    within(30, run)
    assert len(caught) == 1


def test_who_cannot_acknowledge_is_not_asked_again_and_again(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    warehouse.add_source("till", till.url, ["heap"])
    clock = [0.0]
    away = till.path.with_suffix(".away")

    def leave(step: str) -> None:
        if step == "installed":
            till.path.rename(away)
            warehouse.place().connections.close()

    feeder = Feeder(warehouse.place(leave), backoff=Backoff(lambda: clock[0]))
    till.execute("INSERT INTO heap VALUES (5, 'x', 5)")
    assert feeder.capture()
    feeder.install()
    assert feeder.failures == 1
    feeder.install()
    assert feeder.failures == 1, "it is held back"
    away.rename(till.path)
    clock[0] = 100.0
    feeder.install()
    assert set(states(warehouse)) == {"done"}
