"""Whoever ends in the middle, the warehouse's process or the source, anywhere: afterwards every change is there, once.

A change that is taken over twice shows in the heap, which has no key; in a table that has one it stops the table.
"""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.faults.disks import fill, mounted, only_root
from tests.maintain.rounds.killing import Killer, let_go
from tests.maintain.rounds.shops import HEAP, Killed, same, stop_at
from tests.servers import PostgresServer, postgres_with
from tests.sources.lab import Lab
from tests.sources.postgres.lab import PostgresLab
from tests.sources.sqlite.lab import SqliteLab

import matview
from matview.errors import SourceExists, SourceUnreachable
from matview.maintain.rounds import load

STEPS = ("captured", "fixed", "computed", "table heap", "committed", "installed", "deleted", "ended")
"""Of a round over one table; a transaction has some of its own, which tests/faults walks through."""


def write_some(lab: Lab, table: str, number: int) -> None:
    lab.together(
        f"INSERT INTO {table} VALUES ({number}, 'Oslo', 1.50), ({number + 1000}, 'Oslo', 1.50)",
        f"DELETE FROM {table} WHERE id = {number - 2}",
    )


def look(warehouse: matview.Warehouse, lab: Lab, table: str, step: str) -> None:
    """After another round everything is as it is at the source, and nothing is left of the one that was cut short."""
    warehouse.ingest()
    same(warehouse, lab, table)
    nothing_is_left(warehouse, step)


def nothing_is_left(warehouse: matview.Warehouse, step: str) -> None:
    assert not warehouse.catalog.rounds.pending(), step
    assert not any(Path(warehouse.path, "_rounds").iterdir()), step
    assert {fed.error for source in warehouse.sources() for fed in source.tables} == {None}, step


# the warehouse's process ----------------------------------------------------------------------------------------------


@pytest.mark.conforms("M10", "M11")
def test_killed_before_each_write(warehouse: matview.Warehouse, lab: Lab, killer: Killer) -> None:
    """With -9, before the first thing that outlives the process, before the second and so on, until it ends first."""
    warehouse.add_source("shop", lab.url, ["orders"])
    writes: list[str] = []
    for number in itertools.count(1):
        write_some(lab, "orders", number + 10)
        killed, writes = killer.run(warehouse.path, number)
        let_go(warehouse)
        look(warehouse, lab, "orders", f"{number} {writes[-1]}")
        if not killed:
            break
        assert len(writes) == number
    told = Counter(writes)
    assert told["catalog"] >= 7 and told["file"] >= 2 and told["source"] >= 1 and told["write"] == 1, writes
    assert told["delete_dir"] == 1, writes


@pytest.mark.conforms("M10", "M11")
def test_killed_before_each_write_of_a_round_of_two_sources(
    warehouse: matview.Warehouse, till: SqliteLab, shop: PostgresLab, killer: Killer
) -> None:
    """What is done for one source beside the other is cut short as well, wherever both stand."""
    for name, lab in ("till", till), ("shop", shop):
        warehouse.add_source(name, lab.url, ["orders"], prefix=f"{name}_")
    for number in itertools.count(1):
        for lab in (till, shop):
            write_some(lab, "orders", number + 10)
        killed, writes = killer.run(warehouse.path, number)
        let_go(warehouse)
        warehouse.ingest()
        same(warehouse, till, "orders", prefix="till_")
        same(warehouse, shop, "orders", prefix="shop_")
        nothing_is_left(warehouse, f"{number} {writes[-1]}")
        if not killed:
            break
    told = Counter(writes)
    assert told["source"] >= 2 and told["file"] >= 4, writes


def test_the_steps_are_all_of_them(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    warehouse.add_source("till", till.url, ["heap"])
    till.execute("DELETE FROM heap")
    seen: list[str] = []
    warehouse.ingest(step=seen.append)
    within = {"begun", "staged", "journaled", "finished"}
    assert tuple(step for step in seen if step not in within) == STEPS


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


# the source -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One that is restarted."""
    with postgres_with({"fsync": "off"}) as server:
        yield server


@pytest.fixture
def moody(server: PostgresServer, warehouse: matview.Warehouse) -> PostgresLab:
    lab = PostgresLab(server.new_database(), 0)
    lab.execute(HEAP, "INSERT INTO heap VALUES (1, 'Oslo', 1.50), (1, 'Oslo', 1.50)")
    warehouse.add_source("moody", lab.url, ["heap"])
    return lab


def restart(server: PostgresServer, lab: PostgresLab) -> None:
    lab.close()
    server.control("restart", "-m", "immediate")


def away(server: PostgresServer, lab: PostgresLab) -> None:
    """Until it is restarted."""
    lab.close()
    server.control("stop", "-m", "immediate")


def cut(_: PostgresServer, lab: PostgresLab) -> None:
    lab.asked("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'matview'")


def hurry(server: PostgresServer, lab: PostgresLab) -> None:
    """No statement of Matview's is given the time that it needs."""
    lab.execute(f"ALTER DATABASE {lab.user.info.dbname} SET statement_timeout = 1")
    cut(server, lab)


@pytest.mark.conforms("M10")
@pytest.mark.parametrize(
    ("fails", "known"),
    [
        (away, ["before", "captured", "installed"]),
        (hurry, ["before"]),
        (restart, []),
        (cut, []),
    ],
)
def test_the_source_fails(
    warehouse: matview.Warehouse,
    server: PostgresServer,
    moody: PostgresLab,
    fails: Callable[[PostgresServer, PostgresLab], None],
    known: list[str],
) -> None:
    """At each of the steps after which it is asked again: what it does not answer is asked in a later round. Where only
    connections were lost, there are others; in a hurry, some statements may be fast enough."""
    unanswered: list[str] = []
    for number, fatal in enumerate(["before", "captured", "installed"]):
        write_some(moody, "heap", number)

        def step(name: str, fatal: str = fatal) -> None:
            if name == fatal:
                fails(server, moody)

        step("before")
        try:
            failed = bool(warehouse.ingest(step=step).failed)  # after the round was installed
        except SourceUnreachable:
            failed = True
        unanswered += [fatal] if failed else []
        if fails is away:
            restart(server, moody)
        moody.execute(f"ALTER DATABASE {moody.user.info.dbname} RESET statement_timeout")
        cut(server, moody)
        look(warehouse, moody, "heap", fatal)
    assert unanswered[: len(known)] == known and (unanswered == known or fails is hurry)


@pytest.fixture(scope="module")
def small_disk(server: PostgresServer) -> Iterator[Path]:
    """One that the server may use."""
    home = Path(tempfile.mkdtemp(prefix="matview-disk-"))
    with mounted(home) as place:
        for path in (home, place):
            path.chmod(0o755)
        shutil.chown(place, server.server.system_user)
        yield place
    home.rmdir()


@only_root
@pytest.mark.conforms("M10")
def test_a_sqlite_file_on_a_full_disk(warehouse: matview.Warehouse, small_disk: Path) -> None:
    """Writers are refused, and so is the end of a round; what had committed before comes over once."""
    till, ballast = SqliteLab(small_disk / "till.db"), small_disk / "ballast"
    till.execute(HEAP, "INSERT INTO heap VALUES (1, 'Oslo', 1.50)")
    warehouse.add_source("till", till.url, ["heap"])
    for number, full_at in enumerate(("captured", "installed")):
        write_some(till, "heap", number)

        def step(name: str, full_at: str = full_at) -> None:
            if name == full_at:
                fill(ballast)
                with pytest.raises(sqlite3.OperationalError, match="full"):
                    till.execute("INSERT INTO heap VALUES (7, 'too much', 7)")

        assert "full" in warehouse.ingest(step=step).failed["till"].what, "what was installed is told"
        same(warehouse, till, "heap")
        ballast.unlink()
        look(warehouse, till, "heap", full_at)


@only_root
@pytest.mark.conforms("M10")
def test_a_tablespace_on_a_full_disk(warehouse: matview.Warehouse, server: PostgresServer, small_disk: Path) -> None:
    """What cannot be captured is not written either; what was written before comes over."""
    space, ballast = small_disk / "space", small_disk / "ballast"
    space.mkdir()
    shutil.chown(space, server.server.system_user)
    shop = PostgresLab(server.new_database(), 0)
    shop.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
    shop.execute(f"ALTER DATABASE {shop.user.info.dbname} SET default_tablespace = small")
    shop.close()
    shop.execute(HEAP)
    warehouse.add_source("shop", shop.url, ["heap"])
    write_some(shop, "heap", 1)
    fill(ballast)
    with pytest.raises(psycopg.errors.DiskFull):
        shop.execute(*(f"INSERT INTO heap VALUES ({number}, 'Oslo', 1.50)" for number in range(1000)))
    warehouse.ingest()
    same(warehouse, shop, "heap")
    ballast.unlink()
    look(warehouse, shop, "heap", "full")
