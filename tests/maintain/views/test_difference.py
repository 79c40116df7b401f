"""A view equals its query over the state that it shows, however far behind it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview

TABLES = """
CREATE TABLE sales (id INT, city STRING, amount INT, PRIMARY KEY (id));
CREATE TABLE visits (city STRING, who STRING);
INSERT INTO sales VALUES (1, 'Oslo', 1), (2, 'Oslo', 2), (3, 'Rome', 5), (4, NULL, 4);
INSERT INTO visits VALUES ('Oslo', 'ann'), ('Oslo', 'ann'), ('Rome', NULL);
CREATE MATERIALIZED VIEW by_city AS SELECT city, sum(amount) AS total, count(*) AS n FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW top AS SELECT city FROM by_city WHERE total > 6;
CREATE MATERIALIZED VIEW seen AS SELECT s.city, who, s.amount AS weight FROM sales s JOIN visits v ON s.city = v.city;
CREATE MATERIALIZED VIEW above AS SELECT id FROM sales WHERE amount > (SELECT avg(amount) FROM sales);
CREATE MATERIALIZED VIEW ranked AS SELECT id, rank() OVER (ORDER BY amount) AS place FROM Sales
"""
CHANGES = (
    "INSERT INTO sales VALUES (5, 'Lima', 9), (6, 'Oslo', 1)",
    "UPDATE sales SET amount = amount + 3 WHERE city = 'Oslo'",
    "DELETE FROM sales WHERE id IN (1, 5)",
    "INSERT INTO sales VALUES (1, 'Oslo', 1)",
    "DELETE FROM visits WHERE who = 'ann'",
    "INSERT INTO visits VALUES ('Oslo', 'bob'), ('Rome', NULL), ('Rome', NULL)",
)


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", versions=2, spark=spark) as opened:
        with opened.transaction() as tx:
            for text in TABLES.split(";"):
                tx.sql(text)
        yield opened


@pytest.mark.conforms("C12")
def test_a_view_that_is_behind_is_not_different(shop: matview.Warehouse) -> None:
    """Further behind than versions are kept: what has changed since is undone from the logs."""
    assert set(shop.audit().values()) == {0}
    for text in CHANGES:
        shop.sql(text)
    assert shop.audit() == dict.fromkeys(("above", "by_city", "ranked", "seen", "top"), 0)
    assert {view.behind for view in shop.views()} > {0}
    assert shop.diff("by_city", "newest").count() > 0
    shop.refresh("by_city")
    assert shop.diff("by_city", "newest").collect() == []
    assert set(shop.audit().values()) == {0}, "top has yet to take over what by_city has"
    assert shop.diff("top", "newest").count() > 0


def test_what_is_wrong_is_found_behind_as_well(shop: matview.Warehouse) -> None:
    """A view that was spoilt behind our back."""
    shop.sql(CHANGES[0])
    with shop.transaction() as tx:
        spoilt = tx.tables["by_city"]
        spoilt.view = None  # so that it can be changed like a table
        tx.sql("UPDATE by_city SET total = total + 1 WHERE city = 'Rome'")
    assert {name for name, differing in shop.audit().items() if differing} == {"by_city"}
    assert {row["weight"] for row in shop.diff("by_city").collect()} == {1, -1}


def test_a_view_of_variants(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql("CREATE TABLE said (id INT PRIMARY KEY, what VARIANT)")
        warehouse.sql("""INSERT INTO said SELECT 1, parse_json('{"a": 1}')""")
        warehouse.sql("CREATE MATERIALIZED VIEW heard AS SELECT id, what FROM said")
        warehouse.sql("""UPDATE said SET what = parse_json('[2]')""")
        assert [row["weight"] for row in warehouse.diff("heard", "newest").orderBy("weight").collect()] == [-1, 1]
        warehouse.refresh("heard")
        assert warehouse.audit() == {"heard": 0}
