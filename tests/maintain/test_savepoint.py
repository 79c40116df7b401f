"""A statement that fails inside a transaction leaves nothing of itself: the transaction goes on with the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview
from matview import MatviewError
from matview.errors import SnapshotOverDeferred


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", 3, spark, settings=matview.Settings(file_retention=0.0)) as opened:
        with opened.transaction() as tx:
            tx.sql("CREATE TABLE t (id INT, v INT, PRIMARY KEY (id))")
            tx.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
            tx.sql("CREATE VIEWGROUP g REFRESH ON DEMAND")
            tx.sql("CREATE MATERIALIZED VIEW total IN VIEWGROUP g AS SELECT sum(v) AS s FROM t")
            tx.sql("CREATE MATERIALIZED VIEW parts IN VIEWGROUP g AS SELECT id, 10 DIV v AS d FROM t")
        yield opened


def rows(warehouse: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in warehouse.sql(text).collect())


def test_a_refresh_that_fails_at_its_second_view(shop: matview.Warehouse) -> None:
    """The first one had taken the changes over; it does so once all the same."""
    shop.sql("UPDATE t SET v = v - 1 WHERE id = 1")
    with shop.transaction() as tx:
        tx.sql("INSERT INTO t VALUES (3, 3)")
        for mode in ("delta", "full"):
            with pytest.raises(MatviewError, match="parts"):
                tx.refresh("g", mode=mode)
            assert rows(tx, "SELECT s FROM total") == [(3,)]
    assert (rows(shop, "SELECT s FROM total"), len(rows(shop, "SELECT * FROM t"))) == ([(3,)], 3)
    shop.sql("UPDATE t SET v = 5 WHERE id = 1")
    shop.refresh("g")
    assert (rows(shop, "SELECT s FROM total"), shop.audit()) == ([(10,)], {"total": 0, "parts": 0})
    assert shop.gc().files > 0, "what the failed ones wrote is garbage"
    assert shop.audit() == {"total": 0, "parts": 0}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER MATERIALIZED VIEW total AS SELECT nope FROM t",
        "ALTER MATERIALIZED VIEW total AS SELECT sum(10 DIV (v - 1)) AS s FROM t",
        "CREATE MATERIALIZED VIEW made AS SELECT id, 10 DIV (v - 1) AS d FROM t",
        "CREATE MATERIALIZED VIEW made AS "
        "SELECT d, count(*) AS n FROM (SELECT DISTINCT 10 DIV (v - 1) AS d, id FROM t) GROUP BY d",
        "DROP VIEWGROUP g",
    ],
)
def test_a_definition_that_fails(shop: matview.Warehouse, statement: str) -> None:
    with shop.transaction() as tx:
        tx.sql("INSERT INTO t VALUES (3, 3)")
        with pytest.raises(MatviewError):
            tx.sql(statement)
        assert rows(tx, "SELECT s FROM total") == [(3,)]
        tx.refresh("g")
    assert {table.name for table in shop.tables()} == {"t", "total", "parts"}
    assert (rows(shop, "SELECT s FROM total"), shop.audit()) == ([(6,)], {"total": 0, "parts": 0})
    assert shop.gc()


def test_a_statement_that_undoes_another(shop: matview.Warehouse) -> None:
    """Nothing is staged any more, but a view has seen what was."""
    shop.sql("CREATE MATERIALIZED VIEW now MAINTAIN IMMEDIATE AS SELECT id, v FROM t")
    shop.sql("CREATE MATERIALIZED VIEW late MAINTAIN DEFERRED AS SELECT id, v FROM t")
    shop.sql("DELETE FROM t WHERE id = 1")
    with shop.transaction() as tx:
        tx.sql("INSERT INTO t VALUES (1, 7)")
        assert rows(tx, "SELECT * FROM now") == rows(tx, "SELECT * FROM late") == [(1, 7), (2, 2)]
        tx.sql("DELETE FROM t WHERE id = 1")
        assert rows(tx, "SELECT * FROM now") == rows(tx, "SELECT * FROM late") == [(2, 2)]
    assert rows(shop, "SELECT * FROM now") == rows(shop, "SELECT * FROM late") == [(2, 2)]


def test_a_stale_view_that_becomes_deferred(shop: matview.Warehouse) -> None:
    shop.sql("INSERT INTO t VALUES (3, 3)")
    with shop.transaction() as tx:
        tx.sql("ALTER MATERIALIZED VIEW total SET MAINTAIN DEFERRED")
        assert rows(tx, "SELECT s FROM total") == [(6,)]


@pytest.mark.parametrize(
    ("statements", "left"),
    [
        (("ALTER VIEWGROUP e RENAME TO f", "CREATE VIEWGROUP e REFRESH ON DEMAND"), {"base", "g", "e", "f"}),
        (("ALTER VIEWGROUP e RENAME TO f", "DROP VIEWGROUP f"), {"base", "g"}),
        (("ALTER VIEWGROUP e RENAME TO f", "ALTER VIEWGROUP f RENAME TO e"), {"base", "g", "e"}),
        (("ALTER VIEWGROUP e RENAME TO f", "ALTER VIEWGROUP g RENAME TO e"), {"base", "e", "f"}),
        (("DROP VIEWGROUP e", "ALTER VIEWGROUP g RENAME TO E"), {"base", "E"}),
    ],
)
def test_viewgroups_renamed_among_others(shop: matview.Warehouse, statements: tuple[str, ...], left: set[str]) -> None:
    shop.sql("CREATE VIEWGROUP e REFRESH ON DEMAND")
    with shop.transaction() as tx:
        for statement in statements:
            tx.sql(statement)
    groups = {group.name: group for group in shop.viewgroups()}
    assert set(groups) == left
    (holding,) = (group for group in groups.values() if group.views and group.name != "base")
    assert set(holding.views) == {"total", "parts"} and holding.state is not None
    shop.refresh(holding.name)


def test_garbage_after_what_never_was(shop: matview.Warehouse) -> None:
    """Made and dropped by one transaction: there is no table to look into."""
    with shop.transaction() as tx:
        tx.sql("CREATE TABLE gone (x INT)")
        tx.sql("INSERT INTO gone VALUES (1)")
        tx.sql("DROP TABLE gone")
        tx.sql("CREATE MATERIALIZED VIEW twice AS SELECT id FROM t")
        tx.sql("ALTER MATERIALIZED VIEW twice AS SELECT v FROM t")
    for _ in range(2):
        shop.gc()
    assert rows(shop, "SELECT * FROM twice") == [(1,), (2,)]


@pytest.mark.conforms("C3")
def test_every_remedy_can_be_run_as_it_is_printed(shop: matview.Warehouse) -> None:
    """Example 2.2, of a view that was refused and so is not there: with `...` filled in, in one transaction."""
    shop.sql("CREATE MATERIALIZED VIEW late MAINTAIN DEFERRED AS SELECT id, v FROM t")
    create = "CREATE MATERIALIZED VIEW early MAINTAIN SNAPSHOT AS SELECT count(*) AS n FROM late"
    with pytest.raises(SnapshotOverDeferred) as refused:
        shop.sql(create)
    printed = [line.split(": ", 1)[1] for line in str(refused.value).splitlines() if ": " in line][-3:]
    for remedy in printed:
        tx = shop.transaction()
        for statement in remedy.removeprefix("in one transaction, ").split("; "):
            if statement.endswith(" ..."):
                statement = create
            tx.sql(statement.replace(" ... AS", " AS").replace("AS SELECT ...", "AS SELECT count(*) AS n"))
        if "CREATE" not in remedy:
            tx.sql(create)
        tx.commit()
        assert shop.audit()["early"] == 0, remedy
        with shop.transaction() as tx:
            tx.sql("DROP MATERIALIZED VIEW early")
            tx.sql("ALTER MATERIALIZED VIEW late SET MAINTAIN DEFERRED")
