"""Stopped tables that are read whole again, source by source: views follow when the last of them goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.maintain.rounds.shops import Killed, rows, same, stop_at
from tests.sources.sqlite.lab import SqliteLab

import matview
from matview.errors import SourceExists, UnknownSource
from matview.maintain.rounds import load
from matview.maintain.rounds.steps import query_transactions

JOINED = "SELECT o.id, p.amount FROM orders o JOIN places p ON o.city = p.city"


@pytest.fixture
def geo(tmp_path: Path) -> SqliteLab:
    lab = SqliteLab(tmp_path / "geo.db")
    lab.execute("CREATE TABLE places (id INTEGER NOT NULL PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))")
    lab.execute("INSERT INTO places VALUES (1, 'Oslo', 1), (2, 'Bergen', 2)")
    return lab


def stopped(warehouse: matview.Warehouse, **labs: SqliteLab) -> None:
    """Each table has drifted, and is as it was again; what was written meanwhile is in no log."""
    for table, lab in labs.items():
        lab.execute(f"ALTER TABLE {table} ADD COLUMN more TEXT")
    warehouse.ingest()
    assert all(table.error for source in warehouse.sources() for table in source.tables)
    for table, lab in labs.items():
        lab.execute(f"ALTER TABLE {table} DROP COLUMN more")


@pytest.mark.parametrize("also_here", [(), ("INSERT INTO places VALUES (3, 'Moss', 3)",)], ids=["one", "both"])
def test_an_immediate_view_over_two_stopped_sources(
    warehouse: matview.Warehouse, till: SqliteLab, geo: SqliteLab, also_here: tuple[str, ...]
) -> None:
    """What changed in the first while it was stopped is in no log: the view is computed anew with the second."""
    warehouse.add_source("till", till.url, ["orders"], replicate=False)
    warehouse.add_source("geo", geo.url, ["places"])
    warehouse.sql(f"CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS {JOINED}")
    warehouse.sql("CREATE MATERIALIZED VIEW w MAINTAIN IMMEDIATE AS SELECT count(*) AS n FROM v")
    before = rows(warehouse, "SELECT * FROM v")
    stopped(warehouse, orders=till, places=geo)
    till.execute("DELETE FROM orders WHERE id = 1", "INSERT INTO orders VALUES (8, 'Moss', 8), (9, 'Bergen', 9)")
    geo.execute(*also_here)
    warehouse.reload_source("till")
    till.execute("INSERT INTO orders VALUES (10, 'Oslo', 10)")
    warehouse.ingest()
    assert rows(warehouse, "SELECT * FROM v") == before, "the other one holds it back"
    warehouse.reload_source("geo")
    found = {order for (order,) in rows(warehouse, "SELECT id FROM v")}
    assert found == {2, 9, 10} | ({8} if also_here else set())
    assert rows(warehouse, "SELECT n FROM w") == {(len(found),): 1}
    assert not any(edge.anew for edge in warehouse.catalog.views.freshness().edges)
    geo.execute("DELETE FROM places WHERE city = 'Bergen'")
    warehouse.ingest()
    assert set(warehouse.audit().values()) == {0}


def test_late_views_over_two_stopped_sources(warehouse: matview.Warehouse, till: SqliteLab, geo: SqliteLab) -> None:
    """They hold neither source back; they are computed anew when both go on."""
    warehouse.add_source("till", till.url, ["orders"], replicate=False)
    warehouse.add_source("geo", geo.url, ["places"], replicate=False)
    warehouse.sql(f"CREATE MATERIALIZED VIEW later MAINTAIN DEFERRED AS {JOINED}")
    warehouse.sql(f"CREATE MATERIALIZED VIEW sometimes AS {JOINED}")
    stopped(warehouse, orders=till, places=geo)
    till.execute("DELETE FROM orders WHERE id = 1")
    geo.execute("UPDATE places SET amount = 7 WHERE city = 'Bergen'")
    warehouse.reload_source("till")
    assert rows(warehouse, "SELECT id FROM sometimes") == {(1,): 1, (2,): 1}
    warehouse.reload_source("geo")
    for view in ("later", "sometimes"):
        assert rows(warehouse, f"SELECT id, CAST(amount AS INT) FROM {view}") == {(2, 7): 1}, view
    assert set(warehouse.audit().values()) == {0}


def test_a_reload_while_rounds_go_on(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """They leave the source out until it has ended: nothing is fixed behind its back."""
    warehouse.add_source("till", till.url, ["orders", "heap"])
    till.execute("ALTER TABLE orders ADD COLUMN more TEXT")
    warehouse.ingest()
    till.execute("ALTER TABLE orders DROP COLUMN more", "INSERT INTO orders VALUES (8, 'x', 8)")

    def go_on(step: str) -> None:
        if step == "begun":
            till.execute("INSERT INTO heap VALUES (8, 'meanwhile', 8)")
            assert query_transactions(warehouse.place(), ["till"]).round is None

    load.reload(warehouse.place(go_on), "till")
    assert warehouse.ingest().rows == 1
    same(warehouse, till, "orders", "heap")


def test_what_is_half_there_is_not_reloaded(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    with pytest.raises(Killed):
        warehouse.add_source("till", till.url, ["heap"], step=stop_at("capturing"))
    with pytest.raises(SourceExists, match="half added"):
        warehouse.reload_source("till")
    with pytest.raises(UnknownSource):
        warehouse.reload_source("nothing")
