"""A view equals its query over the state that it shows, however far behind it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview
from matview.maintain.views.last_digits import but_for_last_digits

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


def test_what_was_added_up_in_another_order(spark: Any, tmp_path: Path) -> None:
    """The last digits differ, and nothing else does."""
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, other INT, x DOUBLE)")
        warehouse.sql("INSERT INTO t VALUES (1, 0, 0.1D), (2, 0, 0.2D), (3, 0, 0.3D), (4, 0, 1e-7D), (5, 0, NULL)")
        warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s, stddev(x) AS d, min(x) AS lo FROM t")
        warehouse.sql("CREATE MATERIALIZED VIEW w AS SELECT id, x FROM t")
        warehouse.sql("CREATE MATERIALIZED VIEW most AS SELECT max(x) AS x FROM t")
        warehouse.sql("UPDATE t SET other = 1 WHERE id = 1")  # moved behind the others, and nothing to the views
        stored, anew = (warehouse.sql(f"SELECT {what}").collect() for what in ("s FROM v", "sum(x) FROM t"))
        assert stored != anew
        assert warehouse.audit() == {"v": 0, "w": 0, "most": 0}
        warehouse.sql("UPDATE t SET x = x + 1e-14D WHERE id = 3")
        assert {view: warehouse.diff(view, "newest").count() for view in ("v", "w", "most")} == {
            "v": 0,
            "w": 2,
            "most": 2,
        }
        warehouse.sql("UPDATE t SET x = x + 1e-10D WHERE id = 3")
        assert warehouse.diff("v", "newest").count() == 2


ROWS = [
    (1, 0.1, 1.0, 1), (1, 0.1 + 1e-14, 1.0, -1),  # alike
    (2, 0.1, 1.0, 2), (2, 0.1 + 1e-14, 1.0, -1),  # not as often
    (3, 0.1, 1.0, 1), (3, 0.1, 1.1, -1),  # one of two columns is another
    (4, None, 1.0, 1), (4, 0.1, 1.0, -1),
    (5, float("nan"), 1.0, 1), (5, 0.1, 1.0, -1),
    (6, float("inf"), 1.0, 1), (6, 1e308, 1.0, -1),
    (7, None, float("nan"), 1), (7, None, float("nan"), -1),  # alike
    (8, 1.0, 1.0, 1), (8, 2.0, 1.0, 1), (8, 2.0 - 1e-14, 1.0, -1), (8, 1.0 + 1e-14, 1.0, -1),  # alike, two and two
    (9, 0.0, 1.0, 1),
]  # fmt: skip


def test_pairs_that_are_alike(spark: Any) -> None:
    rows = spark.createDataFrame(ROWS, "k INT, a DOUBLE, b DOUBLE, weight BIGINT")
    left = but_for_last_digits(rows, "weight", {"a": "double", "b": "double"})
    assert sorted(row["k"] for row in left.collect()) == [2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 9]
    assert but_for_last_digits(rows, "weight", {}).count() == len(ROWS)
