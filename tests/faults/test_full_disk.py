"""A disk that is full in the middle of a commit: an error that says so, and the state of before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.disks import fill, mounted, only_root

import matview
from matview.errors import StorageFailure
from matview.settings import Settings

pytestmark = only_root
SETTINGS = Settings(lease_ttl=1.0, lease_wait=10.0)


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with mounted(tmp_path_factory.mktemp("disk")) as place:
        yield place


@pytest.fixture(scope="module")
def warehouse(spark: Any, small_disk: Path) -> Iterator[matview.Warehouse]:
    with matview.open(small_disk / "wh", versions=2, spark=spark, settings=SETTINGS) as made:
        made.sql("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
        made.sql("CREATE TABLE b (id INT PRIMARY KEY, v INT)")
        with made.transaction() as tx:
            tx.sql("INSERT INTO a VALUES (1, 1)")
            tx.sql("INSERT INTO b VALUES (1, 1)")
        yield made


@pytest.fixture
def ballast(small_disk: Path) -> Iterator[Path]:
    """A file that takes all the room; it goes when the test ends."""
    file = small_disk / "ballast"
    yield file
    file.unlink(missing_ok=True)


def state(reader: Any) -> tuple[Any, Any]:
    a, b = (sorted(tuple(row) for row in reader.sql(f"SELECT id, v FROM {name}").collect()) for name in "ab")
    return a, b


def update_both(warehouse: matview.Warehouse, step: Callable[[str], None]) -> None:
    with warehouse.transaction(step=step) as tx:
        tx.sql("UPDATE a SET v = v + 1")
        tx.sql("UPDATE b SET v = v + 1")


@pytest.mark.parametrize("step", ["begun", "staged", "journaled", "table a", "table b"])
def test_full_at(step: str, warehouse: matview.Warehouse, ballast: Path) -> None:
    def fill_at(name: str) -> None:
        if name == step:
            fill(ballast)

    before = state(warehouse)
    with warehouse.session() as session:
        with pytest.raises(StorageFailure) as caught:
            update_both(warehouse, fill_at)
        assert re.search("no space left|disk is full", str(caught.value))
        assert state(session) == before, "readers go on, on a full disk"
        ballast.unlink()
        assert state(session) == before
    warehouse.sql("UPDATE a SET v = v + 5")
    ((number, value),) = before[0]
    assert state(warehouse) == ([(number, value + 5)], before[1])
    assert not [t for t in warehouse.catalog.transactions.unfinished() if t.state != "committed"]
