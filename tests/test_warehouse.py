"""The facade: what it opens it closes, what takes long it does before it takes the lease."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import matview
from matview import Settings
from matview.errors import MaintenanceBusy, MatviewError, SessionClosed, WarehouseClosed
from matview.maintain.upkeep.collect import retention
from matview.opening import open_catalog


def no_spark() -> Any:
    raise AssertionError("Spark was started")


class Started(Exception):
    pass


# sessions -------------------------------------------------------------------------------------------------------------


def test_closing_a_warehouse_closes_its_sessions(tmp_path: Path) -> None:
    warehouse = matview.open(tmp_path / "wh", spark=no_spark)
    with open_catalog(str(tmp_path / "wh")) as catalog:
        others = catalog.sessions.open("other", "table", 60)
        left, guest, let_go = warehouse.session(), warehouse.attach(others.id), warehouse.session()
        let_go.detach()
        warehouse.close()
        assert {s.id for s in catalog.sessions.list()} == {others.id, let_go.id}
        left.close()
        guest.detach()
        with pytest.raises(SessionClosed):
            left.sql("SELECT 1")


def test_a_session_has_the_time_to_live_that_is_asked_for(tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=no_spark, settings=Settings(session_ttl=7.0)) as warehouse:
        warehouse.session()
        warehouse.session(ttl=300.0)
        assert sorted(s.ttl for s in warehouse.sessions()) == [7.0, 300.0]


# opening --------------------------------------------------------------------------------------------------------------


def test_a_reader_opens_though_its_versions_cannot_be_raised_now(tmp_path: Path) -> None:
    matview.open(tmp_path / "wh", 3, spark=no_spark).close()
    with open_catalog(str(tmp_path / "wh")) as catalog:
        lease = catalog.lease.acquire("keeper", 60)
        with matview.open(tmp_path / "wh", 4, spark=lambda: None) as warehouse:
            assert warehouse.session().version == 1
            began = time.monotonic()
            with pytest.raises(MaintenanceBusy):
                warehouse.transaction(wait=0.0)
            assert time.monotonic() - began < Settings().lease_wait / 2
            catalog.lease.release(lease)
            warehouse.transaction().rollback()
            assert catalog.version().versions == 4


def test_an_opening_that_fails_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matview.open(tmp_path / "wh", 3, spark=no_spark).close()
    closed = []
    monkeypatch.setattr("matview.catalog.catalog.Catalog.close", lambda self: closed.append(self))
    with pytest.raises(AssertionError, match="Spark"):
        matview.open(tmp_path / "wh", 4, spark=no_spark)
    assert len(closed) == 1


@pytest.mark.parametrize("work", [lambda wh: wh.gc(), lambda wh: wh.set_versions(4)], ids=["gc", "set_versions"])
def test_spark_starts_before_the_lease_is_taken(work: Any, tmp_path: Path) -> None:
    def start() -> Any:
        with open_catalog(str(tmp_path / "wh")) as catalog:
            assert catalog.lease.current() is None
        raise Started

    with matview.open(tmp_path / "wh", 3, spark=start) as warehouse, pytest.raises(Started):
        work(warehouse)


# retention ------------------------------------------------------------------------------------------------------------


def kept(path: Path, **settings: float) -> float:
    chosen = Settings(**settings) if settings else None  # type: ignore[arg-type]
    with matview.open(path, spark=no_spark, settings=chosen) as warehouse:
        return retention(warehouse.runtime)


def test_the_retention_is_the_warehouses(tmp_path: Path) -> None:
    path = tmp_path / "wh"
    assert kept(path, file_retention=60.0) == 60.0  # the first to speak
    assert kept(path) == 60.0
    assert kept(path, session_ttl=1.0) == 60.0
    assert kept(path, file_retention=7200.0) == 7200.0
    assert kept(path, file_retention=10.0) == 7200.0
    assert kept(tmp_path / "other") == 3600.0
    assert kept(tmp_path / "other", file_retention=10.0) == 3600.0


# the end --------------------------------------------------------------------------------------------------------------


def test_closed(tmp_path: Path) -> None:
    warehouse = matview.open(tmp_path / "wh", spark=no_spark)
    warehouse.close()
    warehouse.close()
    with pytest.raises(WarehouseClosed):
        warehouse.session()
    assert not [t for t in threading.enumerate() if t.name == "matview-heart"]
    assert issubclass(WarehouseClosed, MatviewError)
