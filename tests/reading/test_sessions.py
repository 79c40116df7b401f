"""Sessions: expiry in three grains, more versions, garbage, plans that outlive what they read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview
from matview import Settings, errors
from matview.maintain.policy import AtTime, WhenIdle


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    settings = Settings(fold_files=1, fold_least=0, fold_share=0.0, file_retention=3600.0)
    with matview.open(tmp_path / "wh", versions=2, spark=spark, settings=settings) as opened:
        opened.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        opened.sql("CREATE TABLE quiet (x INT)")
        opened.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        opened.sql("INSERT INTO quiet VALUES (7)")
        yield opened


def values(reader: Any) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in reader.sql("SELECT id, v FROM t").collect())


@pytest.mark.conforms("Q11")
def test_the_three_grains_of_expiry(warehouse: matview.Warehouse) -> None:
    exact, table, everywhere = (warehouse.session(grain=g) for g in ("tuple", "table", "global"))
    warehouse.sql("UPDATE t SET v = 11 WHERE id = 1")
    assert values(exact) == values(table) == values(everywhere) == [(1, 10), (2, 20)]
    warehouse.sql("UPDATE t SET v = 12 WHERE id = 1")
    assert exact.sql("SELECT v FROM t WHERE id = 2").collect()[0][0] == 20  # only tuple 1 has lost that version
    with pytest.raises(Exception, match="MV301"):
        exact.sql("SELECT v FROM t").collect()
    assert table.sql("SELECT x FROM quiet").count() == 1
    with pytest.raises(errors.SessionExpired, match="begin a new session"):
        table.sql("SELECT v FROM t")
    with pytest.raises(errors.SessionExpired):
        everywhere.sql("SELECT x FROM quiet")


@pytest.mark.conforms("Q12")
def test_more_versions_without_rewriting(warehouse: matview.Warehouse, tmp_path: Path) -> None:
    before = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "wh").rglob("*.parquet") if "_delta_log" not in str(path)
    }
    warehouse.sql("ALTER WAREHOUSE SET VERSIONS 4")
    assert all(path.stat().st_mtime_ns == changed for path, changed in before.items())
    sessions = []
    for value in (100, 200, 300):
        sessions.append((warehouse.session(), values(warehouse)))
        warehouse.sql(f"UPDATE t SET v = {value} WHERE id = 1")
    for session, expected in sessions:
        assert values(session) == expected
    with pytest.raises(errors.BadSetting):
        warehouse.sql("ALTER WAREHOUSE SET VERSIONS 3")


@pytest.mark.conforms("Q12")
def test_sessions_from_before_the_raise_are_not_lied_to(warehouse: matview.Warehouse) -> None:
    session = warehouse.session(grain="tuple")
    warehouse.sql("UPDATE t SET v = 11 WHERE id = 1")
    warehouse.sql("UPDATE t SET v = 12 WHERE id = 1")
    warehouse.set_versions(5)
    with pytest.raises(errors.SessionExpired):
        session.sql("SELECT v FROM t")


@pytest.mark.conforms("Q16")
def test_garbage_is_what_no_session_needs(warehouse: matview.Warehouse) -> None:
    session = warehouse.session()
    warehouse.sql("DELETE FROM t WHERE id = 1")
    assert warehouse.gc().tuples == 0
    assert values(session) == [(1, 10), (2, 20)]
    session.close()
    assert warehouse.gc().tuples == 1
    assert warehouse.versions("t").count() == 1


@pytest.mark.conforms("Q16")
def test_a_dead_reader_does_not_hold_garbage_back(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", 2, spark, settings=Settings(session_ttl=0.2)) as warehouse:
        warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        warehouse.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        dead = warehouse.session()
        warehouse._heart.remove(dead.id)  # as if its process had died
        warehouse.sql("DELETE FROM t WHERE id = 1")
        deadline = time.monotonic() + 10
        while warehouse.gc().tuples == 0:
            assert time.monotonic() < deadline
        with pytest.raises(errors.SessionExpired):
            dead.sql("SELECT * FROM t")


@pytest.mark.conforms("Q14")
def test_a_plan_once_made_stays_right(warehouse: matview.Warehouse) -> None:
    session = warehouse.session()
    plan = session.sql("SELECT id, v FROM t")
    session.close()
    for value in range(3):
        warehouse.sql(f"UPDATE t SET v = {value}")  # each of them folds
    warehouse.sql("DELETE FROM t WHERE id = 1")
    warehouse.gc()
    assert sorted(tuple(row) for row in plan.collect()) == [(1, 10), (2, 20)]


def test_files_go_when_their_time_is_over(spark: Any, tmp_path: Path) -> None:
    settings = Settings(fold_files=1, fold_least=0, fold_share=0.0, file_retention=0.0)
    with matview.open(tmp_path / "wh", 2, spark, settings=settings) as warehouse:
        warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        warehouse.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        for value in range(3):
            warehouse.sql(f"UPDATE t SET v = {value}")
        warehouse.sql("CREATE TABLE gone (x INT)")
        warehouse.sql("INSERT INTO gone VALUES (1)")
        warehouse.sql("DROP TABLE gone")
        warehouse.gc()
        collected = warehouse.gc()
        assert collected.files == 0
        assert len(list((tmp_path / "wh" / "tables").rglob("part-*.parquet"))) == 1
        assert values(warehouse) == [(1, 2), (2, 2)]


@pytest.mark.conforms("Q15")
def test_commit_when_nobody_reads(warehouse: matview.Warehouse) -> None:
    session = warehouse.session()
    tx = warehouse.transaction(commit=WhenIdle(patience=0.3))
    tx.sql("UPDATE t SET v = 0")
    began = time.monotonic()
    tx.commit()
    assert time.monotonic() - began >= 0.3  # somebody was reading: patience bounds the wait
    session.close()
    tx = warehouse.transaction(commit=WhenIdle(patience=60.0))
    tx.sql("UPDATE t SET v = 1")
    began = time.monotonic()
    tx.commit()
    assert time.monotonic() - began < 30


@pytest.mark.conforms("Q15")
def test_commit_at_a_time(warehouse: matview.Warehouse) -> None:
    moment = time.time() + 1.0
    with warehouse.transaction(commit=AtTime(moment)) as tx:
        tx.sql("UPDATE t SET v = 0")
    committed = warehouse.history(1)[0].ended_at
    assert committed is not None
    assert committed >= moment


@pytest.mark.conforms("Q13")
def test_status_advises(warehouse: matview.Warehouse) -> None:
    for value in range(3):
        warehouse.sql(f"UPDATE t SET v = {value}")
    advice = warehouse.status().advice
    assert advice.versions == 2
    assert advice.reason


def test_closed(warehouse: matview.Warehouse, tmp_path: Path, spark: Any) -> None:
    session = warehouse.session()
    session.close()
    with pytest.raises(errors.SessionClosed):
        session.sql("SELECT 1")
    other = matview.open(tmp_path / "wh", spark=spark)
    other.close()
    with pytest.raises(errors.WarehouseClosed):
        other.sql("SELECT 1")


@pytest.mark.conforms("Q18")
def test_clustering_prunes_under_the_rewrite(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", 2, spark) as warehouse:
        warehouse.sql("CREATE TABLE c (id INT PRIMARY KEY, day INT, v INT) CLUSTER BY (id)")
        for start in (0, 1000, 2000):
            warehouse.sql(f"INSERT INTO c SELECT id, id, id FROM range({start}, {start + 1000})")
        session = warehouse.session()
        warehouse.sql("UPDATE c SET v = v + 100000 WHERE id = 1500")

        def read(text: str) -> int:
            return len(session.sql(text).inputFiles())

        whole = read("SELECT sum(v) FROM c")
        assert read("SELECT v FROM c WHERE id = 5") < whole
        changed = "SELECT id FROM c WHERE v = 1500"  # an updatable column: the previous value counts, too
        assert [row[0] for row in session.sql(changed).collect()] == [1500]
        assert read(changed) < whole
        assert warehouse.sql("SELECT id FROM c WHERE v = 101500").collect()[0][0] == 1500
