"""Tables that stay at their sources: views over them, held against their queries over the rows that were there."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.maintain.rounds.asking import Asked
from tests.maintain.rounds.killing import Killer
from tests.maintain.rounds.oracle import Oracle, writing
from tests.maintain.rounds.shops import Killed, rows, stop_at
from tests.maintain.rounds.test_recovery import let_go
from tests.sources.lab import Lab
from tests.sources.mariadb.lab import MariadbLab
from tests.sources.postgres.lab import PostgresLab
from tests.sources.sqlite.lab import SqliteLab

import matview
from matview.errors import NotIncremental, SourceDrifted, StaysRemote, UnsupportedStatement
from matview.storage import few as few_rows

VIEWS = {
    "itself": "SELECT a.id, b.id AS other FROM s_orders a JOIN s_orders b ON a.city = b.city WHERE a.amount > 1",
    "cyclic": "SELECT o.id, s.id AS other FROM orders o JOIN s_heap h ON o.city = h.city "
    "JOIN s_orders s ON s.city = h.city AND s.amount = o.amount",
    "mixed": "SELECT o.id, s.id AS other, p.id AS third, r.amount FROM orders o JOIN s_orders s ON o.city = s.city "
    "JOIN places p ON p.id = s.id JOIN rates r ON r.city = o.city",
    "beside": "SELECT o.id, o.city, h.amount FROM orders o LEFT JOIN s_heap h ON h.id = o.id",
    "summed": "SELECT s.city, count(*) AS n, max(s.amount) AS m FROM s_orders s JOIN heap h ON h.city = s.city "
    "GROUP BY s.city",
}
POLICIES = {"mixed": "DEFERRED", "itself": "SNAPSHOT"}


def made(warehouse: matview.Warehouse, *names: str) -> None:
    for name in names:
        policy = POLICIES.get(name, "IMMEDIATE")
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} MAINTAIN {policy} AS {VIEWS[name]}")


@dataclass
class Trade:
    """Remote tables of two sources, of which one has a replica, too, and a table of the warehouse."""

    warehouse: matview.Warehouse
    till: SqliteLab
    shop: Lab
    random: Random = field(default_factory=lambda: Random(7))

    def __post_init__(self) -> None:
        self.till.execute("CREATE TABLE places (id INTEGER PRIMARY KEY, city TEXT, amount DECIMAL(12,2))")
        self.till.execute("INSERT INTO places VALUES (1, 'Oslo', 1), (2, 'Bergen', 2), (3, 'x', 3)")
        self.warehouse.add_source("till", self.till.url, ["orders", "places", "heap"], replicate=["places"])
        self.warehouse.sql(
            f"CREATE SOURCE shop FROM '{self.shop.url}' TABLES (orders, heap) PREFIX 's_' WITHOUT REPLICAS"
        )
        self.warehouse.sql("CREATE TABLE rates (id BIGINT, city STRING, amount DECIMAL(12,2), PRIMARY KEY (id))")
        self.warehouse.sql("INSERT INTO rates VALUES (1, 'Oslo', 0.5), (2, 'Moss', 0.1)")
        here = {name: (self.till, name) for name in ("orders", "heap", "places")}
        self.oracle = Oracle({**here, "s_orders": (self.shop, "orders"), "s_heap": (self.shop, "heap")})

    def write(self) -> None:
        for lab in (self.till, self.shop):
            writing(self.random, lab)

    def ingest(self) -> None:
        """A round, during which everybody goes on."""
        self.oracle.look()
        done = self.warehouse.ingest(step=lambda step: self.write() if step == "fixed" else None)
        assert (done.rounds, done.failed) == (1, {})

    def check(self, names: list[str], when: str) -> None:
        """The views show the sources as they were when the last round was fixed, and the warehouse as it is."""
        self.oracle.put("rates", rows(self.warehouse, "SELECT id, city, amount FROM rates"))
        self.warehouse.refresh(*(name for name in names if POLICIES.get(name) == "SNAPSHOT"))
        for name in names:
            found = rows(self.warehouse, f"SELECT * FROM {name}")
            assert found == self.oracle.rows(VIEWS[name]), f"{name}, {when}"


@pytest.fixture
def trade(warehouse: matview.Warehouse, till: SqliteLab, shop: PostgresLab) -> Trade:
    return Trade(warehouse, till, shop)


@pytest.mark.conforms("M2", "M5", "M8", "M13", "M15", "M16")
def test_views_over_tables_of_two_sources(trade: Trade) -> None:
    """What commits after step 1 is not in the views of the round, and is in those of the next."""
    names = list(VIEWS)
    trade.write()
    trade.ingest()
    made(trade.warehouse, *names)
    trade.check(names, "filled")
    trade.write()
    trade.till.execute("UPDATE places SET city = 'Moss' WHERE id = 1")
    trade.ingest()
    trade.warehouse.sql("INSERT INTO rates VALUES (10, 'Bergen', 1)")
    trade.check(names, "a round later")
    trade.ingest()
    trade.ingest()
    trade.check(names, "two rounds later")
    assert set(trade.warehouse.audit().values()) == {0}


@pytest.mark.conforms("M5")
def test_views_over_tables_of_mariadb(warehouse: matview.Warehouse, till: SqliteLab, store: MariadbLab) -> None:
    trade = Trade(warehouse, till, store)
    names = ["cyclic", "beside", "summed"]
    made(warehouse, *names)
    trade.write()
    trade.ingest()
    trade.check(names, "a round later")
    trade.ingest()
    trade.check(names, "two rounds later")


def test_many_rows_go_through_files(trade: Trade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_rows, "FEW_ROWS", -1)
    made(trade.warehouse, "cyclic")
    trade.write()
    trade.ingest()
    trade.check(["cyclic"], "a round later")
    assert trade.warehouse.audit() == {"cyclic": 0}


FOUR = (
    "SELECT o.id, h.id AS other, s.amount, t.id AS third FROM s_orders o JOIN s_heap h ON h.city = o.city "
    "JOIN s_third s ON s.id = o.id JOIN orders t ON t.city = o.city"
)


@pytest.mark.conforms("M3", "M4")
def test_one_subquery_for_each_source(
    warehouse: matview.Warehouse, shop: PostgresLab, till: SqliteLab, asked: Asked
) -> None:
    """Three tables of one source and one of another, of which all change, or one, or only a table of the warehouse."""
    shop.execute(
        "CREATE TABLE third (id INT PRIMARY KEY, city TEXT, amount INT)", "INSERT INTO third VALUES (1, 'x', 7)"
    )
    warehouse.add_source("shop", shop.url, ["orders", "heap", "third"], prefix="s_", replicate=False)
    warehouse.add_source("till", till.url, ["orders"], replicate=False)
    warehouse.sql(f"CREATE MATERIALIZED VIEW four MAINTAIN IMMEDIATE AS {FOUR}")
    assert sorted(asked) == ["postgres", "sqlite"], "a first fill"
    changes = {
        "all tables": ("UPDATE orders SET amount = 1", "UPDATE heap SET amount = 2", "UPDATE third SET amount = 3"),
        "one of them": ("UPDATE third SET amount = 4",),
        "a row that meets nothing": ("INSERT INTO third VALUES (77, 1)",),
    }
    for what, statements in changes.items():
        asked.clear()
        shop.together(*statements)
        till.execute("UPDATE orders SET city = 'Oslo' WHERE id = 2")
        warehouse.ingest()
        assert sorted(asked) == ["postgres", "sqlite"], what
        assert warehouse.audit() == {"four": 0}, what
    asked.clear()
    warehouse.ingest()
    assert asked == [], "nothing has changed"


def test_two_views_that_ask_the_same(warehouse: matview.Warehouse, till: SqliteLab, asked: Asked) -> None:
    """One transaction asks once, in a round and outside."""
    warehouse.add_source("till", till.url, ["orders", "heap"], replicate=False)
    for name in ("one", "other"):
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS SELECT o.id FROM orders o JOIN heap h ON h.id = o.id")
    till.execute("INSERT INTO orders VALUES (9, 'x', 1)", "INSERT INTO heap VALUES (9, 'x', 1)")
    warehouse.ingest()
    asked.forget()
    warehouse.refresh("one", "other")
    assert asked == ["sqlite"]
    assert warehouse.audit() == {"one": 0, "other": 0}
    asked.forget()
    till.execute("INSERT INTO heap VALUES (9, 'x', 2)")
    warehouse.ingest()
    warehouse.refresh("one", "other")
    assert asked == ["sqlite"], "another transaction sees another state"
    assert warehouse.audit() == {"one": 0, "other": 0}


@pytest.mark.conforms("M7")
def test_sources_and_views_at_the_same_time(
    warehouse: matview.Warehouse, shop: PostgresLab, till: SqliteLab, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each subquery begins only when another has begun as well."""
    warehouse.add_source("till", till.url, ["orders"], replicate=False)
    warehouse.add_source("shop", shop.url, ["orders"], prefix="s_", replicate=False)
    both = threading.Barrier(2)

    def together(heard: str) -> None:
        list.append(asked, heard)
        if waiting:
            both.wait(30)

    waiting: list[bool] = []
    monkeypatch.setattr(Asked, "append", lambda _, heard: together(heard))
    views = {
        "sources": ["SELECT o.id FROM orders o JOIN s_orders s ON o.city = s.city"],
        "views": [f"SELECT a.id FROM {table} a JOIN {table} b ON a.id = b.id" for table in ("orders", "s_orders")],
    }
    for what, queries in views.items():
        for number, query in enumerate(queries):
            warehouse.sql(f"CREATE MATERIALIZED VIEW {what}_{number} MAINTAIN IMMEDIATE AS {query}")
        for lab in (till, shop):
            lab.execute("UPDATE orders SET amount = amount + 1, city = 'Oslo'")
        waiting.append(True)
        assert warehouse.ingest().failed == {}
        waiting.clear()
        for number in range(len(queries)):
            warehouse.sql(f"DROP MATERIALIZED VIEW {what}_{number}")
    assert len(asked) >= 4


@pytest.fixture
def killer(spark: Any) -> Iterator[Killer]:
    killer = Killer(spark)
    yield killer
    killer.close()


@pytest.mark.conforms("M10")
def test_killed_after_the_sources_have_answered(
    warehouse: matview.Warehouse, shop: PostgresLab, till: SqliteLab, asked: Asked, killer: Killer
) -> None:
    """What was asked is kept with the round: it is installed without asking again, whatever has become of the tables.
    Killed before that, it asks in the same state; killed after the install, the set that waits is not seen twice."""
    warehouse.add_source("till", till.url, ["orders", "heap"], replicate=False)
    warehouse.add_source("shop", shop.url, ["orders"], prefix="s_", replicate=False)
    joined = "orders o JOIN s_orders s ON o.city = s.city JOIN heap h ON h.id = s.id"
    text = f"SELECT o.id, s.id AS other, h.amount FROM {joined}"
    warehouse.sql(f"CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS {text}")
    oracle = Oracle({"orders": (till, "orders"), "heap": (till, "heap"), "s_orders": (shop, "orders")})
    random = Random(1)

    def write() -> None:
        for lab in (till, shop):
            writing(random, lab)
        oracle.look()

    write()
    _, writes = killer.run(warehouse.path, 1_000_000)
    let_go(warehouse)
    seen: list[Counter[Any]] = []
    answers = {"before the commit of the view": 2, "before anybody is asked": 4, "before it is acknowledged": 2}
    for step, asked_then in answers.items():
        write()
        then = oracle.rows(text)
        if step == "before the commit of the view":
            assert killer.run(warehouse.path, writes.index("write") + 1)[0]
            let_go(warehouse)
        else:
            with pytest.raises(Killed):
                warehouse.ingest(step=stop_at("computed" if "asked" in step else "installed"))
        write()
        asked.clear()
        seen.clear()
        warehouse.ingest(step=lambda n: seen.append(rows(warehouse, "SELECT * FROM v")) if n == "installed" else None)
        assert seen[-1] == oracle.rows(text), step
        assert len(asked) == asked_then, step
        assert len(seen) == 1 or seen[0] == then, step
    assert not any(Path(warehouse.path, "_rounds").iterdir())


def test_a_table_that_drifts_stops_its_views_alone(warehouse: matview.Warehouse, shop: PostgresLab) -> None:
    """Between the first step of a round and its second; then it is mended, and its views are computed anew."""
    warehouse.add_source("shop", shop.url, ["orders", "heap"], replicate=False)
    double = "SELECT a.id, a.city FROM orders a JOIN orders b ON a.id = b.id WHERE a.amount > 0"
    warehouse.sql(f"CREATE MATERIALIZED VIEW o MAINTAIN IMMEDIATE AS {double}")
    warehouse.sql("CREATE MATERIALIZED VIEW late AS SELECT city, count(*) AS n FROM orders GROUP BY city")
    warehouse.sql("CREATE MATERIALIZED VIEW h MAINTAIN IMMEDIATE AS SELECT a.id FROM heap a JOIN heap b ON a.id = b.id")
    before = rows(warehouse, "SELECT * FROM o")

    def drift(step: str) -> None:
        if step == "fixed" and not warehouse.catalog.sources.find("shop").tables[0].error:
            shop.execute("ALTER TABLE orders ADD COLUMN more TEXT")

    shop.together("INSERT INTO orders VALUES (8, 'x', 8)", "INSERT INTO heap VALUES (8, 'x', 8)")
    done = warehouse.ingest(step=drift)
    assert done.failed == {}
    assert [table.error is None for table in warehouse.catalog.sources.find("shop").tables] == [False, True]
    assert rows(warehouse, "SELECT * FROM o") == before
    assert rows(warehouse, "SELECT id FROM h WHERE id = 8") == {(8,): 1}
    for refused in (lambda: warehouse.refresh("o"), lambda: warehouse.diff("o")):
        with pytest.raises(SourceDrifted):
            refused()
    shop.execute("ALTER TABLE orders DROP COLUMN more", "DELETE FROM orders WHERE id = 1", "DELETE FROM heap")
    warehouse.reload_source("shop")
    assert rows(warehouse, "SELECT id FROM o") == {(8,): 1}
    assert rows(warehouse, "SELECT city, n FROM late") == {("Bergen", 1): 1, (None, 1): 1, ("x", 1): 1}
    shop.execute("UPDATE orders SET city = 'after' WHERE id = 8", "INSERT INTO heap VALUES (1, 'x', 1)")
    warehouse.ingest()
    warehouse.refresh("late")
    assert rows(warehouse, "SELECT * FROM o") == {(8, "after"): 1}
    assert set(warehouse.audit().values()) == {0}


@pytest.mark.conforms("M1", "M3")
def test_what_is_not_here_cannot_be_read_here(warehouse: matview.Warehouse, till: SqliteLab) -> None:
    before = till.objects()
    warehouse.sql(f"CREATE SOURCE till FROM '{till.url}' TABLES (orders REMOTE, heap AS heap REMOTE)")
    assert [table.name for table in warehouse.tables()] == ["heap", "orders"]
    warehouse.sql("CREATE TABLE t (id BIGINT)")
    refused = {
        "SELECT * FROM orders": StaysRemote,
        "INSERT INTO t SELECT id FROM heap": StaysRemote,
        "INSERT INTO orders VALUES (1, 'x', 1)": UnsupportedStatement,
        "DROP TABLE orders": UnsupportedStatement,
        "CREATE MATERIALIZED VIEW v AS SELECT id, rand() AS r FROM orders": NotIncremental,
    }
    for text, kind in refused.items():
        with pytest.raises(kind):
            warehouse.sql(text)
    with pytest.raises(StaysRemote, match="stays at source till") as told, warehouse.session() as session:
        session.sql("SELECT id FROM orders")
    assert (told.value.code, told.value.where and told.value.where.column) == ("MV712", 16)
    with pytest.raises(StaysRemote):
        warehouse.versions("orders")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT o.id FROM orders o JOIN heap h ON o.id = h.id JOIN t ON t.id = o.id"
    )
    plan = warehouse.explain("v")
    assert "Δorders ⋈till (heapᵒ −till Δheap)" in plan
    assert "asks 1: till" in plan and 'FROM "Δorders"' in plan and "sent along as __keys_" in plan
    assert "orders: stays at till" in plan and "asks 2" not in plan
    shown = warehouse.sql("EXPLAIN CREATE MATERIALIZED VIEW w AS SELECT a.id FROM heap a JOIN heap b ON a.id = b.id")
    assert any("asks 1: till" in row[0] for row in shown.collect())  # type: ignore[union-attr]
    till.execute("INSERT INTO orders VALUES (9, 'x', 1)")
    assert warehouse.ingest().rows == 1
    warehouse.sql("DROP SOURCE till CASCADE")
    assert ([table.name for table in warehouse.tables()], till.objects()) == (["t"], before)
