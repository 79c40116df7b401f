"""What garbage collection removes, counts and leaves; and that nobody who slept can spoil what it did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview
from matview import Settings
from matview.errors import LeaseLost
from matview.maintain.upkeep import collect
from matview.maintain.upkeep.folding import fold_all

AT_ONCE = Settings(fold_files=1, fold_least=0, fold_share=0.0, file_retention=0.0)


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", 2, spark, settings=AT_ONCE) as opened:
        opened.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        opened.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        yield opened


def data(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "wh" / "tables").rglob("part-*.parquet"))


def test_it_counts_what_it_deletes_and_leaves_no_empty_directory(warehouse: matview.Warehouse, tmp_path: Path) -> None:
    for value in range(3):
        warehouse.sql(f"UPDATE t SET v = {value}")  # each of them folds
    before = data(tmp_path)
    before[0].unlink()  # gone already: nobody deletes it
    left = len(data(tmp_path))
    collected = warehouse.gc()
    assert collected.files == left - len(data(tmp_path)) > 0
    assert warehouse.gc().files == 0
    directories = [d for d in (tmp_path / "wh" / "tables").glob("*/data/*") if d.is_dir()]
    assert [d for d in directories if not any(d.rglob("part-*.parquet"))] == []
    assert [tuple(r) for r in warehouse.sql("SELECT id, v FROM t ORDER BY id").collect()] == [(1, 2), (2, 2)]


@pytest.mark.conforms("Q17")
def test_a_fold_that_slept_cannot_commit_files_that_were_collected(spark: Any, tmp_path: Path) -> None:
    """It has written its files and is about to commit them when its lease runs out and garbage is collected."""
    with matview.open(tmp_path / "wh", 2, spark, settings=Settings(file_retention=0.0)) as warehouse:
        warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        for number in range(2):
            warehouse.sql(f"INSERT INTO t VALUES ({number}, 10)")
        runtime = warehouse.runtime
        table = runtime.tables.table(warehouse.table("t"), 2)
        commit, sleeper = table.log.commit, runtime.catalog.lease.acquire("sleeper", 60)

        def asleep(*arguments: Any) -> None:
            runtime.catalog.lease.release(sleeper)
            table.log.commit = commit  # type: ignore[method-assign]
            before = len(data(tmp_path))
            assert (warehouse.gc().files, len(data(tmp_path))) == (1, before - 1)
            commit(*arguments)

        table.log.commit = asleep  # type: ignore[method-assign]
        with pytest.raises(LeaseLost):
            fold_all(runtime, sleeper, table)
        assert warehouse.sql("SELECT * FROM t").count() == 2


def test_nothing_is_deleted_once_the_lease_is_lost(
    warehouse: matview.Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in range(3):
        warehouse.sql(f"UPDATE t SET v = {value}")
    catalog, before = warehouse.catalog, data(tmp_path)
    look = catalog.garbage.older_than

    def overtaken(seconds: float) -> Any:
        found = look(seconds)
        current = catalog.lease.current()
        assert current is not None
        catalog.lease.release(current)
        catalog.lease.release(catalog.lease.acquire("successor", 60))
        return found

    monkeypatch.setattr(catalog.garbage, "older_than", overtaken)
    with pytest.raises(LeaseLost):
        warehouse.gc()
    assert data(tmp_path) == before


def test_history_is_pruned(warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        warehouse.session().close()
    monkeypatch.setattr(collect, "HISTORY_KEPT", 1)
    warehouse.gc()
    assert len(warehouse.sessions(open_only=False)) == 1
    assert [record.vn for record in warehouse.history()] == [3]


def test_the_retention_of_the_warehouse_counts(spark: Any, tmp_path: Path) -> None:
    """A process that would collect at once leaves what another one, which keeps files longer, may be reading."""
    with matview.open(tmp_path / "wh", 2, spark, settings=AT_ONCE) as hasty:
        hasty.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        hasty.sql("INSERT INTO t VALUES (1, 10)")
        matview.open(tmp_path / "wh", spark=spark, settings=Settings(file_retention=600.0)).close()
        for value in range(3):
            hasty.sql(f"UPDATE t SET v = {value}")
        before = data(tmp_path)
        assert hasty.gc().files == 0
        assert data(tmp_path) == before
