"""Viewgroups and policies on Spark: who is refreshed when, by which transaction, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counting import jobs

import matview
from matview import MatviewError, Settings
from matview.errors import (
    ImmediateOverLate,
    MaintenanceBusy,
    SnapshotOverDeferred,
    UnknownTable,
    UnknownViewgroup,
    UnsupportedStatement,
    ViewgroupExists,
    ViewgroupInUse,
)

SHOP = """
CREATE TABLE sales (id INT, city STRING, amount INT, PRIMARY KEY (id));
INSERT INTO sales VALUES (1, 'Oslo', 1), (2, 'Oslo', 2), (3, 'Rome', 5);
CREATE VIEWGROUP reports REFRESH EVERY '5 minutes' COMMENT 'for the board';
CREATE MATERIALIZED VIEW stock MAINTAIN IMMEDIATE AS SELECT city, count(*) AS n FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW returns MAINTAIN DEFERRED AS SELECT city, sum(amount) AS total FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW overview MAINTAIN DEFERRED
  AS SELECT r.city, r.total, s.n FROM returns r JOIN stock s ON r.city = s.city;
CREATE MATERIALIZED VIEW by_city IN VIEWGROUP reports AS SELECT city, sum(amount) AS total FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW large IN VIEWGROUP reports AS SELECT city FROM by_city WHERE total > 4;
CREATE MATERIALIZED VIEW apart AS SELECT count(*) AS n FROM by_city
"""


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    settings = Settings(lease_wait=30.0)
    with matview.open(tmp_path / "wh", versions=4, spark=spark, settings=settings) as opened:
        with opened.transaction() as tx:
            for text in SHOP.split(";"):
                tx.sql(text)
        yield opened


def rows(warehouse: matview.Warehouse, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in warehouse.sql(text).collect())  # type: ignore[union-attr]


def refreshed_by(warehouse: matview.Warehouse, version: int | None) -> set[str]:
    return {record.view for record in warehouse.refreshes() if record.vn == version}


def states(warehouse: matview.Warehouse) -> dict[str, int | None]:
    return {group.name: group.state for group in warehouse.viewgroups()}


def change(warehouse: matview.Warehouse) -> matview.Outcome:
    made = warehouse.sql("INSERT INTO sales VALUES (4, 'Lima', 7)")
    assert isinstance(made, matview.Outcome)
    return made


@pytest.mark.conforms("C1", "C5", "C6", "C7", "C8")
def test_who_is_refreshed_when(shop: matview.Warehouse) -> None:
    made = change(shop)
    assert str(made).startswith("1 inserted"), "what was asked for is counted, not what follows from it"
    assert refreshed_by(shop, made.version) == {"stock"}, "makesafe: immediate views, in the very transaction"
    assert rows(shop, "SELECT * FROM stock") == [("Lima", 1), ("Oslo", 2), ("Rome", 1)]
    assert shop.catalog.version().current_vn == made.version, "nothing of what was read was deferred"

    assert rows(shop, "SELECT * FROM overview") == [("Lima", 7, 1), ("Oslo", 3, 2), ("Rome", 5, 1)]
    asked = shop.catalog.version().current_vn
    assert refreshed_by(shop, asked) == {"returns", "overview"}, "refresh-deferred-view, with what it reads, at once"

    assert rows(shop, "SELECT * FROM large") == [("Rome",)], "a snapshot stands still"
    done = shop.refresh("large")
    assert refreshed_by(shop, done.version) == {"by_city", "large"}, "refresh-group: the whole group, and no other"
    assert rows(shop, "SELECT * FROM large") == [("Lima",), ("Rome",)]
    assert rows(shop, "SELECT * FROM apart") == [(2,)]
    assert refreshed_by(shop, shop.refresh("apart").version) == {"apart"}
    assert rows(shop, "SELECT * FROM apart") == [(3,)]
    assert set(shop.audit().values()) == {0}


@pytest.mark.conforms("C7")
def test_a_group_refresh_reads_other_groups_as_they_are(shop: matview.Warehouse) -> None:
    """P8: what `apart` reads is in another group, which is old and stays so."""
    change(shop)
    assert shop.refresh("apart").version is None
    assert rows(shop, "SELECT * FROM apart") == [(2,)]
    assert shop.refresh("reports", "apart").version is not None, "parents before children, whatever the order"
    assert rows(shop, "SELECT * FROM apart") == [(3,)]


@pytest.mark.conforms("C11")
def test_a_deferred_view_that_is_up_to_date_costs_a_look(shop: matview.Warehouse) -> None:
    change(shop)
    rows(shop, "SELECT * FROM overview")
    before = shop.history(1)[0].token
    assert jobs(shop, lambda: shop.sql("SELECT * FROM overview")) == 0
    assert shop.history(1)[0].token == before, "no lease was taken"
    with shop.session() as session:
        assert session.version == shop.catalog.version().current_vn
    assert shop.history(1)[0].token == before


@pytest.mark.conforms("C8")
def test_two_who_come_at_once_cause_one_refresh(shop: matview.Warehouse) -> None:
    change(shop)
    found: list[list[tuple[Any, ...]]] = []
    together = threading.Barrier(3)

    def ask() -> None:
        together.wait()
        found.append(rows(shop, "SELECT city, total FROM returns"))

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert found == [[("Lima", 7), ("Oslo", 3), ("Rome", 5)]] * 3
    assert len([record for record in shop.refreshes() if record.view == "returns"]) == 1


def test_a_deferred_view_that_cannot_be_refreshed_is_an_error(shop: matview.Warehouse, spark: Any) -> None:
    change(shop)
    impatient = matview.open(shop.path, spark=spark, settings=Settings(lease_wait=0.1))
    with impatient, shop.transaction():
        with pytest.raises(MaintenanceBusy, match="deferred view overview cannot be brought up to date"):
            impatient.sql("SELECT * FROM overview")
        with pytest.raises(MaintenanceBusy, match="deferred views cannot"):
            impatient.session()
        assert len(rows(impatient, "SELECT * FROM by_city")) == 2, "others are read as ever"


# states and sessions --------------------------------------------------------------------------------------------------


@pytest.mark.conforms("C12")
def test_effective_states(shop: matview.Warehouse) -> None:
    made = shop.catalog.version().current_vn
    assert states(shop) == {"base": made, "apart": made, "reports": made}
    with shop.session() as session:
        changed = change(shop).version
        assert states(shop) == {"base": changed, "apart": made, "reports": made}
        (reports,) = (group for group in shop.viewgroups() if group.name == "reports")
        assert (reports.behind > 0, reports.derived_from, reports.comment) == (True, "base", "for the board")
        refreshed = shop.refresh("reports").version
        assert states(shop) == {"base": refreshed, "apart": made, "reports": refreshed}
        shop.refresh("apart")
        assert states(shop)["apart"] == refreshed, "that of the group that it is derived from"
        nothing_new = shop.catalog.version().current_vn
        assert shop.refresh("reports").version is None
        assert states(shop)["reports"] == nothing_new, "no change since: as good as the newest"
        assert {name: state.version for name, state in session.states().items()} == {
            "base": made,
            "apart": made,
            "reports": made,
        }
    with shop.session() as session:
        assert session.states()["apart"].version == refreshed
        assert rows_of(session, "SELECT * FROM overview") == [("Lima", 7, 1), ("Oslo", 3, 2), ("Rome", 5, 1)]


def rows_of(session: matview.ReaderSession, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.sql(text).collect())


# transactions ---------------------------------------------------------------------------------------------------------


def test_a_transaction_reads_what_it_has_done(shop: matview.Warehouse) -> None:
    """And what was refreshed too early inside it is refreshed again before it commits."""
    with shop.transaction() as tx:
        tx.refresh("reports")
        tx.sql("INSERT INTO sales VALUES (4, 'Lima', 7)")
        assert {tuple(row) for row in tx.sql("SELECT * FROM overview WHERE n = 1").collect()} == {  # type: ignore[union-attr]
            ("Lima", 7, 1),
            ("Rome", 5, 1),
        }
        tx.sql("CREATE MATERIALIZED VIEW cities AS SELECT DISTINCT city FROM sales")
        tx.sql("INSERT INTO sales SELECT 10 + n, 'Bern', total FROM overview WHERE city = 'Lima'")
    assert rows(shop, "SELECT * FROM stock") == [("Bern", 1), ("Lima", 1), ("Oslo", 2), ("Rome", 1)]
    now = shop.catalog.version().current_vn
    assert len(rows(shop, "SELECT * FROM returns")) == len(rows(shop, "SELECT * FROM cities")) == 4
    assert len(rows(shop, "SELECT * FROM large")) == 3
    assert shop.catalog.version().current_vn == now, "all of them at one version"
    assert {name for name, state in states(shop).items() if state == now} == {"base", "cities", "reports"}
    shop.refresh("apart")
    assert set(shop.audit().values()) == {0}


def test_a_change_that_an_immediate_view_cannot_follow_is_undone(shop: matview.Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW shares MAINTAIN IMMEDIATE AS SELECT id, 100 DIV amount AS share FROM sales")
    before = shop.catalog.version().current_vn
    with pytest.raises(MatviewError, match=r"(?i)divi"):
        shop.sql("INSERT INTO sales VALUES (9, 'Rome', 0)")
    assert shop.catalog.version().current_vn == before
    assert shop.status().maintenance is None, "the lease was given back"
    assert rows(shop, "SELECT id FROM sales") == [(1,), (2,), (3,)]


# definitions ----------------------------------------------------------------------------------------------------------


@pytest.mark.conforms("C3", "C4")
def test_what_is_illegal_leaves_nothing_behind(shop: matview.Warehouse) -> None:
    before = shop.catalog.version().current_vn
    refused: dict[str, type[MatviewError]] = {
        "CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS SELECT * FROM returns": ImmediateOverLate,
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM returns": SnapshotOverDeferred,
        "ALTER MATERIALIZED VIEW stock SET MAINTAIN SNAPSHOT": MatviewError,
        "CREATE MATERIALIZED VIEW v IN VIEWGROUP missing AS SELECT * FROM sales": UnknownViewgroup,
        "CREATE VIEWGROUP Reports REFRESH ON DEMAND": ViewgroupExists,
        "CREATE VIEWGROUP apart REFRESH ON DEMAND": ViewgroupExists,
        "ALTER VIEWGROUP missing REFRESH ON DEMAND": UnknownViewgroup,
        "ALTER VIEWGROUP apart REFRESH ON DEMAND": UnknownViewgroup,
        "DROP VIEWGROUP reports": ViewgroupInUse,
        "DROP TABLE sales": UnsupportedStatement,
        "DROP MATERIALIZED VIEW by_city": UnsupportedStatement,
        "REFRESH VIEWGROUP base": UnsupportedStatement,
        "REFRESH VIEWGROUP missing": UnknownViewgroup,
        "REFRESH MATERIALIZED VIEW sales": UnknownTable,
    }
    for text, kind in refused.items():
        with pytest.raises(kind):
            shop.sql(text)
    assert shop.catalog.version().current_vn == before
    assert [view.name for view in shop.views()] == ["apart", "by_city", "large", "overview", "returns", "stock"]
    with pytest.raises(UnsupportedStatement, match=r"sales is read by .*overview"):
        shop.sql("DROP TABLE sales")


@pytest.mark.conforms("C4")
def test_altered_within_one_transaction(shop: matview.Warehouse) -> None:
    """Neither statement is legal alone; a group that a view comes into is refreshed, so that its views agree."""
    change(shop)
    with shop.transaction() as tx:
        tx.sql("ALTER MATERIALIZED VIEW returns SET MAINTAIN SNAPSHOT, SET VIEWGROUP reports")
        tx.sql("ALTER MATERIALIZED VIEW overview SET MAINTAIN SNAPSHOT, SET VIEWGROUP reports")
    found = {view.name: (view.maintain, view.group) for view in shop.views()}
    assert found["returns"] == found["overview"] == ("snapshot", "reports")
    assert states(shop)["reports"] == shop.catalog.version().current_vn
    shop.refresh("apart")
    assert set(shop.audit().values()) == {0}
    shop.sql("ALTER VIEWGROUP reports RENAME TO board")
    shop.sql("ALTER VIEWGROUP board REFRESH CRON '0 6 * * *'")
    assert {view.group for view in shop.views() if view.maintain == "snapshot"} == {"board", "apart"}
    (board,) = (group for group in shop.viewgroups() if group.name == "board")
    assert board.schedule == "CRON '0 6 * * *' AT TIME ZONE 'UTC'"
    assert board.state is not None and set(board.views) == {"by_city", "large", "overview", "returns"}
    shop.sql("ALTER MATERIALIZED VIEW large SET MAINTAIN DEFERRED")
    assert {view.name: view.group for view in shop.views()}["large"] == "board", "with what it reads"


@pytest.mark.conforms("C4")
def test_cascade(shop: matview.Warehouse) -> None:
    shop.sql("DROP VIEWGROUP reports CASCADE")
    assert [view.name for view in shop.views()] == ["overview", "returns", "stock"]
    assert list(states(shop)) == ["base"]
    shop.sql("DROP MATERIALIZED VIEW IF EXISTS stock CASCADE")
    assert [view.name for view in shop.views()] == ["returns"]
    shop.sql("DROP TABLE sales CASCADE")
    assert (shop.views(), shop.tables()) == ([], [])
    assert shop.catalog.views.freshness().logged == {}


def test_shown(shop: matview.Warehouse) -> None:
    assert [row[:3] for row in rows(shop, "SHOW VIEWGROUPS")] == [
        ("apart", "ON DEMAND", ["apart"]),
        ("base", "", ["stock", "returns", "overview"]),
        ("reports", "EVERY '5 minutes'", ["by_city", "large"]),
    ]
    assert ("stock", "immediate", "base", "auto") in [row[:4] for row in rows(shop, "SHOW MATERIALIZED VIEWS")]
    change(shop)
    assert ("stock", shop.catalog.version().current_vn) in [row[:2] for row in rows(shop, "SHOW REFRESHES")]
    with shop.session() as session:
        assert [row[:2] for row in rows(shop, "SHOW SESSIONS")] == [(session.id, session.version)]


# logs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.conforms("C9")
def test_one_log_per_table_trimmed_when_every_edge_has_passed(shop: matview.Warehouse) -> None:
    sales = shop.table("sales").id
    change(shop)
    shop.sql("UPDATE sales SET amount = amount + 1")
    assert len(shop.catalog.views.log(sales, 0)) == 2, "an entry for each version, not for each view"
    rows(shop, "SELECT * FROM overview")
    assert len(shop.catalog.views.log(sales, 0)) == 2, "by_city has yet to take them over"
    shop.refresh("reports")
    assert shop.catalog.views.log(sales, 0) == ()
    shop.refresh("apart")
    assert shop.catalog.views.freshness().logged == {}
    assert set(shop.audit().values()) == {0}


@pytest.mark.conforms("C15")
def test_an_update_costs_the_same_however_many_views_wait(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql("CREATE TABLE sales (id INT, city STRING, amount INT, PRIMARY KEY (id))")
        alone = jobs(warehouse, lambda: warehouse.sql("INSERT INTO sales VALUES (1, 'Oslo', 1)"))
        with warehouse.transaction() as tx:
            for number, policy in enumerate(["DEFERRED", "SNAPSHOT"] * 3):
                tx.sql(f"CREATE MATERIALIZED VIEW v{number} MAINTAIN {policy} AS SELECT id FROM sales")
        known = warehouse.catalog.views.freshness().defined_vn
        beside = jobs(warehouse, lambda: warehouse.sql("INSERT INTO sales VALUES (2, 'Rome', 1)"))
        assert beside == alone
        assert len(warehouse.catalog.views.log(warehouse.table("sales").id, 0)) == 1
        assert warehouse.catalog.views.freshness().defined_vn == known, "the order of views is not computed anew"
