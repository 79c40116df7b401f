"""What cannot be, on a warehouse: circles, missing tables, what others read, groups that go, clocks that step back.

Each is a clear error, and leaves everything as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

import matview
from matview.catalog.catalog import Catalog
from matview.cli.status import group_sentence
from matview.opening import catalog_url
from matview.scheduler import Scheduler
from matview.warehouse import Warehouse

SHOP = """
CREATE TABLE sales (id INT, city STRING, amount INT, PRIMARY KEY (id));
CREATE VIEWGROUP reports REFRESH EVERY '1 hour';
CREATE MATERIALIZED VIEW by_city IN VIEWGROUP reports AS SELECT city, sum(amount) AS total FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW top IN VIEWGROUP reports AS SELECT city FROM by_city WHERE total > 4;
CREATE MATERIALIZED VIEW large MAINTAIN DEFERRED AS SELECT id FROM sales WHERE amount > 1000
"""
REFUSED: dict[str, tuple[str, str]] = {
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM v": ("MV610", "v reads v"),
    "ALTER MATERIALIZED VIEW top AS SELECT * FROM top": ("MV610", "top reads top"),
    "ALTER MATERIALIZED VIEW by_city AS SELECT city FROM top": ("MV102", "by_city is read by top"),
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM missing": ("MV103", "there is no table 'missing'"),
    "ALTER MATERIALIZED VIEW top AS SELECT * FROM missing": ("MV103", "there is no table 'missing'"),
    "DROP TABLE sales": ("MV102", "sales is read by by_city, large, top"),
    "DROP MATERIALIZED VIEW by_city": ("MV102", "by_city is read by top"),
    "DROP VIEWGROUP reports": ("MV614", "viewgroup reports has views: by_city, top"),
    "ALTER MATERIALIZED VIEW by_city SET MAINTAIN DEFERRED": ("MV608", "snapshot view top reads deferred view by_city"),
    "ALTER MATERIALIZED VIEW top SET MAINTAIN IMMEDIATE": ("MV607", "immediate view top reads snapshot view by_city"),
    "ALTER MATERIALIZED VIEW top SET REFRESH EVERY '1 day'": ("MV603", "top is to be refreshed EVERY '1 day'"),
    "ALTER MATERIALIZED VIEW large SET MAINTAIN SNAPSHOT, SET VIEWGROUP base": ("MV604", "large is in viewgroup base"),
    "CREATE VIEWGROUP g REFRESH EVERY '0 seconds'": ("MV613", "a second is the least"),
    "ALTER VIEWGROUP reports REFRESH CRON '61 * * * *'": ("MV613", "is no cron line"),
    "ALTER VIEWGROUP reports REFRESH CRON '0 0 30 2 *'": ("MV613", "bad day-of-month"),
    "ALTER VIEWGROUP reports REFRESH CRON '0 6 * * *' AT TIME ZONE 'Mars/Olympus'": ("MV613", "no time zone"),
}


@pytest.fixture(scope="module")
def shop(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[matview.Warehouse]:
    place = tmp_path_factory.mktemp("refusals") / "wh"
    with matview.open(place, spark=spark, settings=matview.Settings(lease_wait=60.0)) as opened:
        opened.apply(SHOP)
        opened.sql("INSERT INTO sales VALUES (1, 'Oslo', 1), (2, 'Rome', 5)")
        yield opened


@pytest.mark.parametrize("text", REFUSED)
def test_refused_and_nothing_changed(text: str, shop: matview.Warehouse) -> None:
    code, what = REFUSED[text]
    before = shop.catalog.version().current_vn, shop.plan(SHOP).is_idle, len(shop.tables())
    with pytest.raises(matview.MatviewError, match=code) as refused:
        shop.sql(text)
    assert what in refused.value.what
    assert refused.value.help, "what to do instead"
    assert (shop.catalog.version().current_vn, shop.plan(SHOP).is_idle, len(shop.tables())) == before == (3, True, 4)
    assert shop.status().maintenance is None, "the lease was given back"
    assert not shop.catalog.transactions.unfinished()


def test_a_group_that_is_refreshed_while_it_is_being_dropped(spark: Any, tmp_path: Path) -> None:
    """Whoever comes second finds it gone, or waits until it is refreshed."""
    with matview.open(tmp_path / "wh", spark=spark, settings=matview.Settings(lease_wait=60.0)) as warehouse:
        warehouse.apply(SHOP)
        warehouse.sql("INSERT INTO sales VALUES (1, 'Oslo', 1), (2, 'Rome', 5)")
        errors: list[matview.MatviewError] = []

        def refresh() -> None:
            with pytest.raises(matview.MatviewError) as refused:
                warehouse.refresh("reports")
            errors.append(refused.value)

        refreshing = threading.Thread(target=refresh)
        with warehouse.transaction() as tx:
            tx.sql("DROP VIEWGROUP reports CASCADE")
            refreshing.start()
            wait_until(lambda: refreshing.is_alive())
        refreshing.join()
        assert [error.code for error in errors] == ["MV103"]
        assert errors[0].what == "there is no materialized view or viewgroup 'reports'"
        assert [group.name for group in warehouse.viewgroups()] == ["base"]
        assert not warehouse.catalog.transactions.unfinished()

        warehouse.apply(SHOP)
        warehouse.sql("INSERT INTO sales VALUES (3, 'Lima', 9)")
        dropping = threading.Thread(target=lambda: warehouse.sql("DROP VIEWGROUP reports CASCADE"))
        with warehouse.transaction() as tx:
            tx.refresh("reports")
            dropping.start()
            made = tx.commit().version
        dropping.join()
        assert made is not None and warehouse.catalog.version().current_vn == made + 1, "one after the other"
        assert [view.name for view in warehouse.views()] == ["large"]
        assert warehouse.catalog.groups.states() == ()


def test_a_clock_that_steps_back(spark: Any, tmp_path: Path) -> None:
    """Within a period the last refresh counts, from a period on the group is due at once. No state goes back."""
    place, hands = str(tmp_path / "wh"), [1_000_000.0]
    matview.open(place, spark=spark).close()
    catalog = Catalog.open(catalog_url(place), clock=lambda: hands[0])
    with Warehouse(place, catalog, spark, matview.Settings()) as warehouse:
        warehouse.apply(SHOP)
        scheduler = Scheduler(warehouse)
        assert scheduler.due() == []
        hands[0] -= 600.0
        warehouse.sql("INSERT INTO sales VALUES (1, 'Oslo', 7)")
        (reports,) = (group for group in warehouse.viewgroups() if group.name == "reports")
        assert (scheduler.due(), reports.behind) == ([], 0.0), "nobody is ahead of time"
        assert "state of" in group_sentence(reports, hands[0])
        hands[0] -= 3600.0
        assert scheduler.due() == ["reports"]
        (tried,) = scheduler.round()
        assert tried.error is None
        assert scheduler.due() == [], "the schedule goes on from there"
        states = {group.name: group.state for group in warehouse.viewgroups()}
        assert states["reports"] == states["base"] > (reports.state or 0)
        hands[0] += 3600.0
        assert scheduler.due() == ["reports"]
