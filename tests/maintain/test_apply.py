"""Definitions applied as one version, and what is illegal refused before it is filled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counting import jobs

import matview
from matview.errors import CyclicViews, ImmediateOverLate, SnapshotOverDeferred, TableExists, UnknownTable

SHOP = """
CREATE TABLE sales (id INT, city STRING, amount DECIMAL(12, 2) NOT NULL, PRIMARY KEY (id)) CLUSTER BY (city);
CREATE VIEWGROUP reports REFRESH EVERY '5 minutes' COMMENT 'for the board';
CREATE MATERIALIZED VIEW top IN VIEWGROUP reports AS SELECT city FROM by_city WHERE total > 4;
CREATE MATERIALIZED VIEW by_city (city, total) IN VIEWGROUP reports COMMENT 'sums'
  AS SELECT city, sum(amount) FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW large MAINTAIN DEFERRED AS SELECT id, city FROM sales WHERE amount > 2
"""


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", spark=spark) as opened:
        opened.apply(SHOP)
        opened.sql("INSERT INTO sales VALUES (1, 'Oslo', 1), (2, 'Oslo', 2), (3, 'Rome', 5)")
        opened.refresh("reports")
        yield opened


def rows(warehouse: matview.Warehouse, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in warehouse.sql(text).collect())  # type: ignore[union-attr]


@pytest.mark.conforms("C4")
def test_one_version_and_none_the_second_time(shop: matview.Warehouse) -> None:
    made = shop.history(10)[-1]
    assert made.vn == 2, "all of it was one transaction, whatever the order of the statements"
    before = shop.history(1)[0].token
    again = shop.apply(SHOP)
    assert (again.version, str(again)) == (None, "everything is as it should be")
    assert {step.action for step in again.proposal.steps} == {"unchanged"}
    assert shop.history(1)[0].token == before, "no lease was taken"


@pytest.mark.conforms("C4")
def test_what_differs_is_altered(shop: matview.Warehouse) -> None:
    text = SHOP.replace("EVERY '5 minutes'", "ON DEMAND").replace("MAINTAIN DEFERRED", "MAINTAIN IMMEDIATE")
    done = shop.apply(text.replace("total > 4", "total > 1").replace("amount > 2", "amount > 4"))
    assert [str(step) for step in done.proposal.steps if step.statements] == [
        "change viewgroup reports: refresh EVERY '5 minutes', to be ON DEMAND",
        "change view large: maintain deferred, to be immediate; another query",
        "change view top: another query",
    ]
    assert str(done).endswith(f"version {shop.catalog.version().current_vn}")
    assert rows(shop, "SELECT id FROM large") == [(3,)]
    assert rows(shop, "SELECT city FROM top") == [("Oslo",), ("Rome",)]
    found = {view.name: (view.maintain, view.group) for view in shop.views()}
    assert found == {"by_city": ("snapshot", "reports"), "large": ("immediate", "base"), "top": ("snapshot", "reports")}
    (reports,) = (group for group in shop.viewgroups() if group.name == "reports")
    assert (reports.schedule, reports.comment) == ("ON DEMAND", "for the board")
    shop.sql("INSERT INTO sales VALUES (4, 'Lima', 9)")
    assert rows(shop, "SELECT id FROM large") == [(3,), (4,)]
    assert shop.audit() == {"by_city": 0, "large": 0, "top": 0}


def test_a_view_leaves_a_group_that_is_said_no_more(shop: matview.Warehouse) -> None:
    shop.apply("DROP MATERIALIZED VIEW top; CREATE MATERIALIZED VIEW by_city (city, total) COMMENT 'sums'"
               " AS SELECT city, sum(amount) FROM sales GROUP BY city")  # fmt: skip
    assert {view.name: view.group for view in shop.views()}["by_city"] == "by_city"


def test_what_is_wrong_leaves_nothing_behind(shop: matview.Warehouse) -> None:
    before = shop.history(1)[0].token
    with pytest.raises(TableExists, match="column id is int not null, not bigint not null"):
        shop.apply("CREATE TABLE more (x INT); CREATE TABLE sales (id BIGINT, city STRING, PRIMARY KEY (id))")
    with pytest.raises(SnapshotOverDeferred):
        shop.apply("CREATE TABLE more (x INT); CREATE MATERIALIZED VIEW v AS SELECT * FROM large")
    assert [table.name for table in shop.tables()] == ["by_city", "large", "sales", "top"]
    assert shop.history(1)[0].token == before


@pytest.mark.conforms("C3")
def test_an_illegal_view_is_refused_before_it_is_filled(shop: matview.Warehouse) -> None:
    refused: dict[str, type[matview.MatviewError]] = {
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM large": SnapshotOverDeferred,
        "CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS SELECT * FROM top": ImmediateOverLate,
        "ALTER MATERIALIZED VIEW top AS SELECT city FROM large": SnapshotOverDeferred,
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM v": CyclicViews,
        "ALTER MATERIALIZED VIEW top AS SELECT * FROM top": CyclicViews,
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM missing": UnknownTable,
        "CREATE MATERIALIZED VIEW large AS SELECT * FROM large": TableExists,
    }
    for text, kind in refused.items():
        with pytest.raises(kind):
            shop.sql(text)
    before = shop.history(1)[0].token
    for text in list(refused)[:5]:
        assert jobs(shop, lambda text=text: _refused(shop, text)) == 0  # type: ignore[misc]
    assert shop.history(1)[0].token == before, "no lease was taken"


def _refused(warehouse: matview.Warehouse, text: str) -> None:
    with pytest.raises(matview.MatviewError):
        warehouse.sql(text)


def test_types_as_spark_spells_them(spark: Any, tmp_path: Path) -> None:
    """Whatever can be a column's type is found to be the same the second time."""
    kinds = ["BOOLEAN", "BYTE", "TINYINT", "SHORT", "INTEGER", "LONG", "FLOAT", "REAL", "DOUBLE", "DEC", "NUMERIC(7,2)"]
    kinds += ["DECIMAL", "DECIMAL(5)", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING", "CHAR(3)"]
    kinds += ["VARCHAR(9)", "BINARY", "ARRAY<INT>", "MAP<STRING, ARRAY<BIGINT>>", "STRUCT<a: INT, b: STRUCT<c: DATE>>"]
    kinds += [
        "STRUCT<a: INT NOT NULL COMMENT 'x', B: DECIMAL(5)>",
        "VARIANT",
        "INTERVAL DAY TO SECOND",
        "INTERVAL YEAR TO MONTH",
    ]
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))
    text = f"CREATE TABLE t (id INT, {columns}, PRIMARY KEY (id))"
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql(text)
        found = warehouse.plan(text)
        assert found.problems == ()
        assert found.is_idle
