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
    shop.refresh("odd", mode="full")
    wait_until_due(scheduler, "fast", "odd")
    assert [tried.error for tried in scheduler.round()] == [None, None]
    assert shop.sql("SELECT sum(share) FROM shares").collect() == [(30,)]  # type: ignore[union-attr]


@pytest.mark.spark
def test_run_stops_on_a_signal(tmp_path: Path) -> None:
    place = str(tmp_path / "wh")
    with matview.open(place) as warehouse, warehouse.transaction() as tx:
        for text in SHOP.split(";"):
            tx.sql(text)
    command = [sys.executable, "-c", "import sys; from matview.cli import main; sys.exit(main())", "run", "-w", place]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        heard = next(line for line in process.stdout if "fast: nothing new" in line)
        assert heard
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, rest.endswith("stopped\n")) == (0, True)
