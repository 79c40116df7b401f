"""The scheduler on a real warehouse: what is due, once; what fails, apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

import matview
from matview.errors import MaintenanceBusy
from matview.scheduler import Scheduler

SHOP = """
CREATE TABLE sales (id INT, amount INT, PRIMARY KEY (id));
INSERT INTO sales VALUES (1, 5);
CREATE VIEWGROUP fast REFRESH EVERY '1 second';
CREATE VIEWGROUP slow REFRESH EVERY '1 day';
CREATE VIEWGROUP odd REFRESH EVERY '1 second';
CREATE MATERIALIZED VIEW sums IN VIEWGROUP fast AS SELECT sum(amount) AS total FROM sales;
CREATE MATERIALIZED VIEW counts IN VIEWGROUP slow AS SELECT count(*) AS n FROM sales;
CREATE MATERIALIZED VIEW shares IN VIEWGROUP odd AS SELECT id, 100 DIV amount AS share FROM sales
"""


class Hands:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", spark=spark, settings=matview.Settings(lease_wait=0.1)) as opened:
        with opened.transaction() as tx:
            for text in SHOP.split(";"):
                tx.sql(text)
        yield opened


def wait_until_due(scheduler: Scheduler, *groups: str) -> None:
    """By the catalog's clock, a second after the last refresh began."""
    wait_until(lambda: set(groups) <= set(scheduler.due()))


def test_rounds(shop: matview.Warehouse) -> None:
    hands = Hands()
    scheduler = Scheduler(shop, clock=hands)
    shop.sql("INSERT INTO sales VALUES (2, 0)")
    wait_until_due(scheduler, "fast", "odd")
    fast, odd = scheduler.round()
    assert (fast.group, fast.error, fast.outcome and fast.outcome.version) == ("fast", None, 4), (
        "odd does not keep it back"
    )
    assert (odd.group, odd.outcome, odd.again_in) == ("odd", None, 60.0)
    assert shop.sql("SELECT total FROM sums").collect() == [(5,)]  # type: ignore[union-attr]
    assert 0 <= scheduler.pause() <= 1
    wait_until_due(scheduler, "fast")
    assert [tried.group for tried in scheduler.round()] == ["fast"], "odd is held back, slow is not due"
    assert shop.catalog.version().current_vn == 4, "nothing new, no version"

    shop.sql("UPDATE sales SET amount = 10 WHERE id = 2")
    hands.now = 61.0
    wait_until_due(scheduler, "fast", "odd")
    with shop.transaction():
        busy = scheduler.round()
    assert [(type(tried.error), tried.again_in) for tried in busy] == [(MaintenanceBusy, 1.0), (MaintenanceBusy, 2.0)]
    hands.now = 64.0
    wait_until_due(scheduler, "fast", "odd")
    assert [tried.error for tried in scheduler.round()] == [None, None]
    assert shop.sql("SELECT sum(share) FROM shares").collect() == [(30,)]  # type: ignore[union-attr]


TWO_GROUPS = """
CREATE TABLE sales (id INT, amount INT, PRIMARY KEY (id));
CREATE VIEWGROUP a REFRESH EVERY '1 second';
CREATE VIEWGROUP b REFRESH EVERY '1 second';
CREATE MATERIALIZED VIEW sums IN VIEWGROUP a AS SELECT sum(amount) AS total FROM sales;
CREATE MATERIALIZED VIEW large IN VIEWGROUP a AS SELECT total FROM sums WHERE total > 1;
CREATE MATERIALIZED VIEW counts IN VIEWGROUP b AS SELECT count(*) AS n FROM sales
"""


def running(place: Path) -> subprocess.Popen[str]:
    """`matview run` in a process of its own, and a process group of its own, Spark's Java in it."""
    command = [sys.executable, "-c", "import sys; from matview.cli import main; sys.exit(main())"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [*command, "run", "-w", str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )


@pytest.mark.parametrize("whom", ["the process", "its whole group"])
def test_told_to_stop_in_the_middle_of_a_refresh(whom: str, spark: Any, tmp_path: Path) -> None:
    """The refresh that is under way is ended, no other is begun. Where Spark is told to stop as well (as a service
    manager does), the refresh is undone. Nothing is half done, and whoever comes next goes on."""
    place = tmp_path / "wh"
    with matview.open(place, spark=spark, settings=matview.Settings(lease_wait=60.0)) as warehouse:
        warehouse.apply(TWO_GROUPS)
        warehouse.sql("INSERT INTO sales VALUES (1, 5), (2, 6)")
        process = running(place)
        try:
            wait_until(lambda: is_refreshing(warehouse, process.pid), 120.0)
            token = warehouse.history(1)[0].token
            (os.kill if whom == "the process" else os.killpg)(process.pid, signal.SIGTERM)
            said, _ = process.communicate(timeout=120)
        finally:
            process.kill()
        assert (process.returncode, said.endswith("stopped\n")) == (0, True), said
        (refresh,) = (record for record in warehouse.history(5) if record.token == token)
        assert refresh.state == ("committed" if whom == "the process" else "aborted")
        assert warehouse.history(1)[0].token == token, "no other refresh was begun"
        assert not warehouse.catalog.transactions.unfinished()
        assert warehouse.status().maintenance is None, "the lease was given back"
        behind = {view.name: view.behind for view in warehouse.views()}
        assert behind == {"sums": int(whom != "the process"), "large": 0, "counts": 1}
        assert set(warehouse.audit().values()) == {0}
        scheduler = Scheduler(warehouse)
        wait_until_due(scheduler, "a", "b")
        assert [tried.error for tried in scheduler.round()] == [None, None]
        assert warehouse.sql("SELECT total, n FROM large, counts").collect() == [(11, 2)]  # type: ignore[union-attr]


def is_refreshing(warehouse: matview.Warehouse, process: int) -> bool:
    lease = warehouse.catalog.lease.current()
    return lease is not None and f":{process}:" in lease.holder and warehouse.catalog.version().maintenance_active
