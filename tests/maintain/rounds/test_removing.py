"""Sources that go, or stay half there: what they leave touches nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.maintain.rounds.shops import Killed, rows, same, states, stop_at
from tests.sources.sqlite.lab import SqliteLab

import matview
from matview.errors import SourceUnreachable
from matview.maintain.rounds.steps import install


@pytest.fixture
def other(tmp_path: Path) -> SqliteLab:
    lab = SqliteLab(tmp_path / "other.db")
    lab.execute("CREATE TABLE places (id INTEGER NOT NULL PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))")
    return lab


def left_waiting(warehouse: matview.Warehouse) -> None:
    """A round that nobody has installed."""
    with pytest.raises(Killed):
        warehouse.ingest(step=stop_at("computed"))


def gone_away(warehouse: matview.Warehouse, lab: SqliteLab) -> Path:
    """The source cannot be reached while it is removed, and stays half removed."""
    lab.path.rename(away := lab.path.with_suffix(".away"))
    warehouse.place().connections.close()
    with pytest.raises(SourceUnreachable):
        warehouse.remove_source("till")
    assert warehouse.catalog.sources.find("till").state == "removing"
    return away


def test_what_waited_of_a_removed_source_goes_into_nobodys_table(
    warehouse: matview.Warehouse, till: SqliteLab, other: SqliteLab
) -> None:
    warehouse.add_source("till", till.url, ["orders"])
    warehouse.add_source("geo", other.url, ["places"])
    till.execute("INSERT INTO orders VALUES (7, 'x', 7)")
    other.execute("INSERT INTO places VALUES (7, 'x', 7)")
    left_waiting(warehouse)
    away = gone_away(warehouse, till)
    assert states(warehouse)[-1] == "discarded"
    assert not any(Path(warehouse.path, "_rounds").iterdir())
    warehouse.sql("CREATE TABLE orders (id BIGINT, city STRING, amount DECIMAL(12,2), PRIMARY KEY (id))")
    warehouse.ingest()
    assert rows(warehouse, "SELECT * FROM orders") == {}
    same(warehouse, other, "places")
    away.rename(till.path)
    warehouse.remove_source("till")
    assert [table.name for table in warehouse.tables()] == ["orders", "places"]


def test_a_round_feeds_the_tables_that_it_was_fixed_for(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """By what they are, not by what they are called."""
    warehouse.add_source("till", till.url, ["orders", "heap"])
    till.together("INSERT INTO orders VALUES (7, 'x', 7)", "INSERT INTO heap VALUES (7, 'x', 7)")
    left_waiting(warehouse)
    with warehouse.transaction() as tx:  # behind everybody's back
        tx.tables["orders"].source = None
        tx.sql("DROP TABLE orders")
        tx.sql("CREATE TABLE orders (id BIGINT, city STRING, amount DECIMAL(12,2), PRIMARY KEY (id))")
    installed = install(warehouse.place(), {})
    assert installed is not None and installed.error is None
    assert rows(warehouse, "SELECT * FROM orders") == {}
    same(warehouse, till, "heap")
