"""Materialized views on Spark: whatever happens to their tables, a refreshed view equals its query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.counting import jobs
from tests.plan.test_strategies import VIEWS
from tests.queries.generator import query
from tests.queries.tables import TABLES, Row, Signed, world

import matview
from matview import Settings
from matview.errors import NotIncremental, TableExists, UnknownTable, UnsupportedStatement
from matview.local import relations
from matview.maintain.change import meeting
from matview.maintain.views import at_hand, run
from matview.storage import few as few_rows
from matview.storage.changes import changes
from matview.storage.changes_of_few import changes_of_few
from matview.storage.lookup import looked_up
from matview.storage.table import VersionedTable

# folds after nearly every transaction, files removed at once
EAGER = Settings(fold_files=2, fold_least=4, fold_share=0.2, file_retention=0.0)


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", spark=spark, settings=EAGER) as opened:
        yield opened


def make_tables(warehouse: matview.Warehouse) -> None:
    with warehouse.transaction() as tx:
        for name, schema in TABLES.items():
            columns = ", ".join(f"{c.name} {c.type}" for c in schema.columns)
            key = f", PRIMARY KEY ({', '.join(schema.key)})" if schema.key else ""
            tx.sql(f"CREATE TABLE {name} ({columns}{key})")


def values(rows: list[Row]) -> str:
    return ", ".join(f"({', '.join(map(literal, row))})" for row in rows)


def literal(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return "NULL" if value is None else str(value)


def apply(tx: matview.MaintenanceTransaction, warehouse: matview.Warehouse, table: str, signed: Signed) -> None:
    """A signed bag, as SQL values."""
    if signed:
        names = [c.name for c in TABLES[table].columns]
        casts = [f"CAST(c{i} AS {c.type}) AS {c.name}" for i, c in enumerate(TABLES[table].columns)]
        rows = values([(*row, weight) for weight, row in signed])
        aliases = ", ".join([*(f"c{i}" for i in range(len(names))), "weight"])
        text = f"SELECT {', '.join(casts)}, weight FROM VALUES {rows} AS t({aliases})"
        tx.apply(table, warehouse.spark.sql(text))


def assert_right(warehouse: matview.Warehouse, *views: str) -> None:
    for view in views:
        assert warehouse.diff(view).collect() == [], f"{view} by {warehouse.views()}"


@pytest.mark.conforms("M2", "M16", "C2", "C6", "C10")
def test_views_follow_a_random_history(warehouse: matview.Warehouse) -> None:
    make_tables(warehouse)
    chosen = ["counts and sums", "extremes", "distinct counts", "of groups", "top", "left join", "not in", "bags"]
    views = {name.replace(" ", "_"): VIEWS[name] for name in chosen}
    views["over_views"] = "SELECT a.city, a.s, b.lo FROM counts_and_sums a LEFT JOIN extremes b ON a.city <=> b.city"
    made = world(3)
    with warehouse.transaction() as tx:
        for table, rows in made.before.items():
            apply(tx, warehouse, table, [(1, row) for row in rows])
    with warehouse.transaction() as tx:
        tx.sql("CREATE VIEWGROUP together REFRESH ON DEMAND")
        for name, text in views.items():
            tx.sql(f"CREATE MATERIALIZED VIEW {name} IN VIEWGROUP together AS {text}")
    with warehouse.transaction() as tx:
        for table, signed in made.change.items():
            apply(tx, warehouse, table, signed)
    later: list[Callable[[matview.MaintenanceTransaction], object]] = [
        lambda tx: tx.sql("UPDATE orders SET amount = coalesce(amount, 0) + 1, city = 'Bergen' WHERE paid"),
        lambda tx: tx.sql("DELETE FROM orders"),
    ]
    for change in later:
        with warehouse.transaction() as tx:
            change(tx)
        warehouse.gc()
        warehouse.refresh("together")
        assert_right(warehouse, *views)


@pytest.mark.conforms("M15")
@pytest.mark.parametrize(("first", "few"), [(11, 5000), (14, -1)], ids=["on the driver", "by Spark"])
def test_random_views(first: int, few: int, warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three queries of the generator in one world, which changes and changes back, by both strategies."""
    monkeypatch.setattr(few_rows, "FEW_ROWS", few)
    monkeypatch.setattr(meeting, "LONGEST_LIST", 0)
    make_tables(warehouse)
    made = world(first)
    with warehouse.transaction() as tx:
        for table, rows in made.before.items():
            apply(tx, warehouse, table, [(1, row) for row in rows])
    views = [f"v{seed}" for seed in range(first, first + 3)]
    with warehouse.transaction() as tx:
        for seed, view in enumerate(views, first):
            tx.sql(f"CREATE MATERIALIZED VIEW {view} AS {query(seed, 3)}")
    for mode, sign in ("delta", 1), ("affected", -1):
        with warehouse.transaction() as tx:
            for table, signed in made.change.items():
                apply(tx, warehouse, table, [(sign * weight, row) for weight, row in signed])
        warehouse.refresh(*views, mode=mode)  # type: ignore[arg-type]
        assert_right(warehouse, *views)


COLUMNS = [f"c{i}" for i in range(24)]
WIDE = {
    "filtered": f"SELECT * FROM wide WHERE {' OR '.join(f'{c} > 7' for c in COLUMNS)}",
    "sums": f"SELECT g, {', '.join(f'sum({c}) AS of_{c}' for c in COLUMNS)} FROM wide GROUP BY g",
    "joined": f"SELECT w.*, t.v FROM wide AS w JOIN t ON w.g = t.id WHERE {' OR '.join(f'{c} > 7' for c in COLUMNS)}",
}


@pytest.mark.timeout(240)
@pytest.mark.conforms("M2")
def test_wide_tables(warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark derives from conditions on columns, and their copies, must not grow with each column."""
    monkeypatch.setattr(few_rows, "FEW_ROWS", -1)
    warehouse.sql(f"CREATE TABLE wide (id INT PRIMARY KEY, g INT, {', '.join(f'{c} INT' for c in COLUMNS)})")
    shown = ", ".join(f"CAST(id % {i + 2} AS INT)" for i in range(len(COLUMNS)))
    warehouse.sql(f"INSERT INTO wide SELECT id, id % 3, {shown} FROM range(40)")
    warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    warehouse.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    with warehouse.transaction() as tx:
        for name, text in WIDE.items():
            tx.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {text}")
    warehouse.sql(f"UPDATE wide SET {', '.join(f'{c} = {c} + 1' for c in COLUMNS)} WHERE id % 10 = 3")
    warehouse.sql("DELETE FROM wide WHERE id = 5")
    warehouse.refresh(*WIDE)
    assert_right(warehouse, *WIDE)


def some_statement(random: Random) -> str:
    """About a few keys, so that the same rows come, change, go and come again."""
    key, value = random.randint(1, 4), random.choice(["0", "1", "2", "5", "NULL"])
    return random.choice(
        [
            f"INSERT INTO t SELECT {key}, {value} WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = {key})",
            f"UPDATE t SET v = {value} WHERE id <= {key}",
            f"DELETE FROM t WHERE id = {key}",
            f"INSERT INTO b VALUES ({value}), ({value})",
            f"DELETE FROM b WHERE v = {value}",
        ]
    )


@pytest.mark.conforms("C10", "M2")
@pytest.mark.parametrize(
    ("seed", "few", "at_once"),
    [(1, 5000, 5000), (1, 5000, -1), (2, -1, -1)],
    ids=["at hand", "on the driver", "by Spark"],
)
def test_changes_are_net_before_they_are_propagated(
    seed: int, few: int, at_once: int, warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several statements a transaction, several transactions a refresh. What was 0 in between is divided by nowhere."""
    monkeypatch.setattr(few_rows, "FEW_ROWS", few)
    monkeypatch.setattr(relations, "MOST_ROWS", at_once)
    monkeypatch.setattr(meeting, "LONGEST_LIST", 1)
    random = Random(seed)
    warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    warehouse.sql("CREATE TABLE b (v INT)")
    with warehouse.transaction() as tx:
        tx.sql("CREATE MATERIALIZED VIEW quotients AS SELECT id, 10 DIV v AS q FROM t")
        tx.sql("CREATE MATERIALIZED VIEW sums AS SELECT v, count(*) AS n, sum(id) AS s FROM t GROUP BY v")
        tx.sql("CREATE MATERIALIZED VIEW pairs AS SELECT t.id, b.v FROM t JOIN b ON t.v = b.v")
    for _ in range(4):
        for _ in range(random.randint(1, 3)):
            with warehouse.transaction() as tx:
                for _ in range(random.randint(1, 3)):
                    tx.sql(some_statement(random))
        with warehouse.transaction() as tx:
            tx.sql("UPDATE t SET v = 3 WHERE v = 0")
        warehouse.refresh("quotients", "sums", "pairs", mode="delta")
        assert_right(warehouse, "quotients", "sums", "pairs")


@pytest.fixture
def sales(warehouse: matview.Warehouse) -> matview.Warehouse:
    with warehouse.transaction() as tx:
        tx.sql("CREATE TABLE sales (id INT, city STRING, amount DECIMAL(9,2), note STRING, PRIMARY KEY (id))")
        tx.sql("INSERT INTO sales VALUES (1, 'Oslo', 1, 'a'), (2, 'Oslo', 2, 'b'), (3, 'Rome', 5, 'c')")
    warehouse.sql("CREATE MATERIALIZED VIEW by_city AS SELECT city, sum(amount) AS total FROM sales GROUP BY city")
    return warehouse


@pytest.mark.conforms("C17")
def test_a_column_that_is_not_read_costs_nothing(sales: matview.Warehouse) -> None:
    sales.sql("UPDATE sales SET note = 'z'")
    version = sales.catalog.version().current_vn
    assert jobs(sales, lambda: sales.refresh("by_city")) == 0
    assert sales.catalog.version().current_vn == version
    assert [v.behind for v in sales.views()] == [0], "it has come as far as its table"


@pytest.mark.conforms("C17")
@pytest.mark.parametrize("few", [5000, -1], ids=["on the driver", "by Spark"])
def test_a_value_under_a_sum_is_one_entry(few: int, sales: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that the change brings into the plan: one for an update of what is added up, two for one of a key."""
    entries: list[int] = []

    def counted(*arguments: Any) -> Any:
        found = changes(*arguments)
        entries.append(found.count())
        return found

    def counted_here(*arguments: Any) -> Any:
        found = changes_of_few(*arguments)
        entries.append(found.size)
        return found

    monkeypatch.setattr(few_rows, "FEW_ROWS", few)
    monkeypatch.setattr(run, "changes", counted)
    monkeypatch.setattr(at_hand, "changes_of_few", counted_here)
    for change, expected in {
        "UPDATE sales SET amount = amount + 1, note = NULL WHERE id < 3": 2,
        "UPDATE sales SET note = 'back', amount = NULL WHERE id = 1": 1,
        "UPDATE sales SET city = 'Rome' WHERE id = 1": 2,
    }.items():
        sales.sql(change)
        entries.clear()
        with sales.transaction() as tx:
            tx.refresh("by_city", mode="delta")
        if "amount" in change:
            assert entries == [expected]
        assert_right(sales, "by_city")
    text = "SELECT c.city, sum(s.amount * 2) AS t, count(s.note) AS n FROM sales s JOIN by_city c ON s.city = c.city"
    sales.sql(f"CREATE MATERIALIZED VIEW joined AS {text} WHERE s.id > 0 GROUP BY c.city")
    sales.sql("UPDATE sales SET amount = 9 WHERE id = 2")
    with sales.transaction() as tx:
        tx.refresh("joined", mode="delta")
    assert_right(sales, "joined", "by_city")


@pytest.mark.conforms("M17")
@pytest.mark.parametrize("few", [5000, -1], ids=["on the driver", "by Spark"])
def test_what_views_have_in_common_is_computed_once(
    few: int, sales: matview.Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scans of the tables under the views, in the plans that run, or looks at them: together as many as one alone."""
    monkeypatch.setattr(few_rows, "FEW_ROWS", few)
    sales.sql("CREATE TABLE cities (city STRING, country STRING, PRIMARY KEY (city))")
    sales.sql("INSERT INTO cities VALUES ('Oslo', 'NO'), ('Rome', 'IT')")
    joined = "FROM sales JOIN cities ON sales.city = cities.city"
    sales.sql(f"CREATE MATERIALIZED VIEW rows AS SELECT id, country, note {joined}")
    sales.sql(f"CREATE MATERIALIZED VIEW sums AS SELECT country, sum(amount) AS total {joined} GROUP BY country")
    scanned: Counter[str] = Counter()
    tuples = VersionedTable.tuples

    def counted(table: VersionedTable, *rest: Any) -> Any:
        scanned[table.name] += 1
        return tuples(table, *rest)

    def looked(table: VersionedTable, *rest: Any) -> Any:
        scanned[table.name] += 1
        return looked_up(table, *rest)

    monkeypatch.setattr(VersionedTable, "tuples", counted)
    monkeypatch.setattr(at_hand, "looked_up", looked)

    def scans(*views: str) -> int:
        scanned.clear()
        tx = sales.transaction()
        tx.refresh(*views, mode="delta")
        tx.rollback()
        return scanned["sales"] + scanned["cities"]

    sales.sql("INSERT INTO sales VALUES (20, 'Oslo', 3, 'x'), (21, 'Rome', 4, 'y')")
    alone = [scans("rows"), scans("sums")]
    assert scans("rows", "sums") == max(alone) < sum(alone)
    sales.refresh("rows", "sums")
    assert_right(sales, "rows", "sums")


def test_nothing_new_costs_nothing(sales: matview.Warehouse) -> None:
    assert jobs(sales, lambda: sales.refresh("by_city")) == 0


def test_a_refresh_that_changes_nothing_is_on_record(sales: matview.Warehouse) -> None:
    """It took its time, which the next choice has to know of."""
    with sales.transaction() as tx:
        tx.sql("INSERT INTO sales VALUES (8, 'Bari', 0, NULL)")
        tx.sql("UPDATE sales SET amount = amount + 1 WHERE city = 'Oslo'")
    with sales.transaction() as tx:
        tx.sql("DELETE FROM sales WHERE id = 8")
        tx.sql("UPDATE sales SET amount = amount - 1 WHERE city = 'Oslo'")
    version = sales.catalog.version().current_vn
    sales.refresh("by_city", mode="delta")
    assert sales.catalog.version().current_vn == version
    assert next(v.strategy for v in sales.views() if v.name == "by_city") == "delta"
    assert jobs(sales, lambda: sales.refresh("by_city")) == 0


def test_a_session_keeps_its_view(sales: matview.Warehouse) -> None:
    with sales.session() as before:
        sales.sql("INSERT INTO sales VALUES (4, 'Oslo', 10, NULL)")
        sales.refresh("by_city", mode="full")
        rows = {tuple(row) for row in before.sql("SELECT city, CAST(total AS INT) FROM by_city").collect()}
        assert rows == {("Oslo", 3), ("Rome", 5)}
    assert sales.sql("SELECT total FROM by_city WHERE city = 'Oslo'").collect()[0][0] == 13


def test_a_view_shows_only_its_own_columns(sales: matview.Warehouse) -> None:
    assert sales.sql("SELECT * FROM by_city").columns == ["city", "total"]
    assert [row["column"] for row in sales.sql("DESCRIBE by_city").collect()] == ["city", "total"]
    assert [t.name for t in sales.tables()] == ["by_city", "sales"]


def test_refreshed_twice_in_one_transaction(sales: matview.Warehouse) -> None:
    with sales.transaction() as tx:
        tx.sql("UPDATE sales SET amount = amount + 1")
        tx.refresh("by_city")
        tx.sql("UPDATE sales SET amount = amount * 2 WHERE city = 'Oslo'")
        tx.refresh("by_city")
        tx.refresh("by_city")
    assert_right(sales, "by_city")


def test_what_is_undone_is_not_taken_over(sales: matview.Warehouse) -> None:
    sales.sql("INSERT INTO sales VALUES (9, 'Bern', 1, NULL)")
    tx = sales.transaction()
    tx.refresh("by_city")
    tx.rollback()
    sales.refresh("by_city")
    assert_right(sales, "by_city")


def test_alter_and_drop(sales: matview.Warehouse) -> None:
    with sales.session() as before:
        sales.sql("ALTER MATERIALIZED VIEW by_city AS SELECT city, count(*) AS n FROM sales GROUP BY city")
        assert before.sql("SELECT * FROM by_city").columns == ["city", "total"]
    assert sales.sql("SELECT * FROM by_city").columns == ["city", "n"]
    sales.sql("CREATE MATERIALIZED VIEW busy AS SELECT city FROM by_city WHERE n > 1")
    with pytest.raises(UnsupportedStatement, match="read by busy"):
        sales.sql("DROP MATERIALIZED VIEW by_city")
    with pytest.raises(UnsupportedStatement, match="read by by_city"):
        sales.sql("DROP TABLE sales")
    with pytest.raises(UnsupportedStatement, match="materialized view"):
        sales.sql("DELETE FROM by_city")
    with pytest.raises(TableExists):
        sales.sql("CREATE MATERIALIZED VIEW busy AS SELECT 1 AS x")
    sales.sql("DROP MATERIALIZED VIEW busy")
    sales.sql("DROP MATERIALIZED VIEW by_city")
    sales.sql("DROP MATERIALIZED VIEW IF EXISTS by_city")
    with pytest.raises(UnknownTable):
        sales.refresh("by_city")
    sales.sql("DROP TABLE sales")
    assert sales.tables() == []


def test_what_cannot_be_maintained(sales: matview.Warehouse) -> None:
    text = "SELECT id,\n  rand() < 2 AS sure FROM sales"
    with pytest.raises(NotIncremental, match=r"(?i)rand") as caught:
        sales.sql(f"CREATE MATERIALIZED VIEW odd REFRESH POLICY INCREMENTAL STRICT AS\n{text}")
    assert caught.value.where is not None and (caught.value.where.line, caught.value.where.column) == (3, 3)
    sales.sql(f"CREATE MATERIALIZED VIEW odd AS {text}")
    sales.sql("INSERT INTO sales VALUES (7, NULL, NULL, NULL)")
    sales.refresh("odd")
    found = next(view for view in sales.views() if view.name == "odd")
    assert found.strategy == "full" and found.reason is not None and "rand" in found.reason.lower()
    assert sales.sql("SELECT count(*) FROM odd WHERE sure").collect()[0][0] == 4


@pytest.mark.conforms("M3")
def test_explain_says_how(sales: matview.Warehouse) -> None:
    sales.sql("CREATE TABLE cities (city STRING, country STRING, PRIMARY KEY (city))")
    text = "SELECT s.id, c.country FROM sales s JOIN cities c ON s.city = c.city"
    plan = "\n".join(row[0] for row in sales.sql(f"EXPLAIN CREATE MATERIALIZED VIEW j AS {text}").collect())
    for part in ("Join on [sales.city = cities.city]", "ADD = ", "∪dw", "strategies", "delta", "full", "sales: "):
        assert part in plan, plan
    sales.sql(f"CREATE MATERIALIZED VIEW j AS {text}")
    sales.sql("INSERT INTO cities VALUES ('Oslo', 'NO')")
    assert "for the changes that are waiting" in sales.explain("j")


def test_explain_looks_at_what_matters(sales: matview.Warehouse) -> None:
    """A change of a column that a view does not read is no change to it, for a refresh and for its explanation."""
    sales.sql("CREATE MATERIALIZED VIEW plain AS SELECT id, city FROM sales")
    sales.sql("UPDATE sales SET note = 'another'")
    assert "for the changes that are waiting" not in sales.explain("plain")
    sales.sql("UPDATE sales SET city = 'Rome' WHERE city = 'Oslo'")
    assert "for the changes that are waiting" in sales.explain("plain")


@pytest.mark.parametrize("few", [20_000, -1], ids=["on the driver", "by Spark"])
def test_columns_that_are_called_as_old_values_are(
    few: int, warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "FEW_ROWS", few)
    warehouse.sql("CREATE TABLE t (id INT, x INT, `x~old` INT, PRIMARY KEY (id))")
    warehouse.sql("INSERT INTO t VALUES (1, 1, 10)")
    warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT id, x, `x~old` FROM t")
    warehouse.sql("CREATE MATERIALIZED VIEW s AS SELECT sum(x) AS x, sum(`x~old`) AS y FROM t")
    warehouse.sql("INSERT INTO t VALUES (2, 2, 20)")
    warehouse.sql("UPDATE t SET x = x + 1 WHERE id = 1")
    warehouse.sql("UPDATE t SET `x~old` = `x~old` + 1 WHERE id = 2")
    warehouse.refresh("v", "s", mode="delta")
    assert_right(warehouse, "v", "s")
