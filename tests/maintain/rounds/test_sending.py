"""What is sent along with a question: keys of few rows, and never more than the driver should hold."""

from __future__ import annotations

from tests.maintain.rounds.asking import Asked
from tests.maintain.rounds.shops import rows
from tests.sources.sqlite.lab import SqliteLab

import matview
from matview.plan.sites import MOST_SENT

MANY = f"SELECT id, 1 AS one, 'Oslo' AS city FROM range({MOST_SENT + 1})"


def many(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    """A table of many rows in the warehouse, and one that stays in the till."""
    warehouse.add_source("till", till.url, ["orders"], replicate=False)
    warehouse.sql("CREATE TABLE many (id BIGINT, one INT, city STRING, PRIMARY KEY (id))")
    warehouse.sql(f"INSERT INTO many {MANY}")


def test_keys_of_many_changes_are_not_sent(warehouse: matview.Warehouse, till: SqliteLab, asked: Asked) -> None:
    many(warehouse, till)
    warehouse.sql(
        "CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS SELECT o.id, m.one FROM orders o JOIN many m ON m.id = o.id"
    )
    asked.forget()
    warehouse.sql("UPDATE many SET one = 2 WHERE id < 10")
    assert (asked, asked.sent) == (["sqlite"], [10])
    warehouse.sql("UPDATE many SET one = 3")
    assert (asked, asked.sent) == (["sqlite", "sqlite"], [10, 0]), "the table is asked for, not looked up"
    assert rows(warehouse, "SELECT * FROM v") == {(1, 3): 1, (2, 3): 1, (3, 3): 1}


def test_keys_that_turn_out_to_be_many(warehouse: matview.Warehouse, till: SqliteLab, asked: Asked) -> None:
    """One row has changed, and meets many before it leads to the source."""
    many(warehouse, till)
    warehouse.sql("CREATE TABLE few (one INT, name STRING, PRIMARY KEY (one))")
    warehouse.sql("INSERT INTO few VALUES (1, 'x'), (2, 'y')")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS "
        "SELECT o.id, f.name FROM orders o JOIN many m ON m.id = o.id JOIN few f ON f.one = m.one"
    )
    asked.forget()
    warehouse.sql("UPDATE few SET name = 'z' WHERE one = 1")
    assert (asked, asked.sent) == (["sqlite"], [0])
    assert rows(warehouse, "SELECT * FROM v") == {(1, "z"): 1, (2, "z"): 1, (3, "z"): 1}


def test_many_changes_that_have_waited(warehouse: matview.Warehouse, till: SqliteLab, asked: Asked) -> None:
    """The source has no more of them than of any other: they stay here, and its table comes."""
    warehouse.add_source("till", till.url, ["orders", "heap"], replicate=False)
    warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT o.id, h.city FROM orders o JOIN heap h ON h.id = o.id")
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < {MOST_SENT + 20})"
    till.execute(f"INSERT INTO orders {numbers} SELECT i, 'x', 1 FROM n", "INSERT INTO heap VALUES (10, 'y', 1)")
    assert warehouse.ingest().failed == {}
    asked.forget()
    warehouse.refresh("v")
    assert set(asked) == {"sqlite"} and max(asked.sent) <= 1
    assert rows(warehouse, "SELECT * FROM v") == {(1, "Oslo"): 2, (10, "y"): 1}
    assert warehouse.audit() == {"v": 0}


def test_explain_shows_what_a_refresh_runs(warehouse: matview.Warehouse, till: SqliteLab, asked: Asked) -> None:
    """A table of few rows is looked up at the source, one of many is not; and so says the plan."""
    warehouse.add_source("till", till.url, ["orders"], replicate=False)
    warehouse.sql("CREATE TABLE rates (id BIGINT, city STRING, PRIMARY KEY (id))")
    warehouse.sql("INSERT INTO rates VALUES (1, 'Oslo'), (2, 'Moss')")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW v REFRESH POLICY FULL AS "
        "SELECT o.id, r.city FROM orders o JOIN rates r ON r.id = o.id"
    )
    assert "sent along as __keys_0_0" in warehouse.explain("v")
    asked.forget()
    warehouse.sql("REFRESH MATERIALIZED VIEW v FULL")
    assert (asked, asked.sent) == (["sqlite"], [2])
    warehouse.sql("INSERT INTO rates SELECT id + 10, 'x' FROM range(1000)")
    assert "sent along" not in warehouse.explain("v")
    warehouse.sql("REFRESH MATERIALIZED VIEW v FULL")
    assert asked.sent == [2, 0]
