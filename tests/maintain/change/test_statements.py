"""Statements as transactions of their own and inside one; what they refuse changes nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview
from matview import errors


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", versions=3, spark=spark) as opened:
        opened.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        opened.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
        yield opened


def rows(warehouse: Any, table: str = "t") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in warehouse.sql(f"SELECT * FROM {table}").collect())


BAD = [
    ("SELECT * FROM nope", errors.UnknownTable),
    ("SELECT nope FROM t", errors.UnknownColumn),
    ("SELEC 1", errors.SqlSyntaxError),
    ("INSERT INTO nope VALUES (1)", errors.UnknownTable),
    ("INSERT INTO t (id, nope) VALUES (4, 1)", errors.UnknownColumn),
    ("INSERT INTO t VALUES (4)", errors.SqlSyntaxError),
    ("INSERT INTO t VALUES ('x', 1)", errors.TypeMismatch),
    ("INSERT INTO t VALUES (1, 1)", errors.DuplicateKey),
    ("INSERT INTO t VALUES (4, 1), (4, 2)", errors.DuplicateKey),
    ("INSERT INTO t VALUES (NULL, 1)", errors.NullKey),
    ("INSERT INTO t VALUES (4, 1 / 0)", errors.BadValue),
    ("UPDATE t SET id = 1 WHERE id = 2", errors.DuplicateKey),
    ("UPDATE t SET id = NULL WHERE id = 2", errors.NullKey),
    ("UPDATE t SET v = 99999999999", errors.BadValue),
    ("MERGE INTO t USING (VALUES (1), (1)) s(k) ON id = k WHEN MATCHED THEN UPDATE SET v = 0", errors.AmbiguousMerge),
    ("SELECT __rid FROM t", errors.UnknownColumn),
    ("UPDATE t SET v = __rid", errors.UnknownColumn),
    ("UPDATE t SET id = id + 10, v = t.__op1", errors.UnknownColumn),
    ("UPDATE t SET v = 1 WHERE __level = 'base'", errors.UnknownColumn),
    ("DELETE FROM t WHERE __VN1 < 0", errors.UnknownColumn),
    ("DELETE FROM t AS x WHERE EXISTS (SELECT 1 FROM t WHERE t.id = x.__pre1_v)", errors.UnknownColumn),
    ("MERGE INTO t USING (VALUES (1)) s(k) ON id = k AND __vn1 > 0 WHEN MATCHED THEN DELETE", errors.UnknownColumn),
    ("MERGE INTO t USING (VALUES (1)) s(k) ON id = k WHEN MATCHED THEN UPDATE SET v = t.__rid", errors.UnknownColumn),
    ("CREATE TABLE t (x INT)", errors.TableExists),
    ("DROP TABLE nope", errors.UnknownTable),
    ("VACUUM t", errors.UnsupportedStatement),
    ("INSERT OVERWRITE t SELECT 1, 1", errors.UnsupportedStatement),
]  # fmt: skip


@pytest.mark.conforms("Q4", "Q5")
def test_what_is_refused_changes_nothing(warehouse: matview.Warehouse) -> None:
    before, version = rows(warehouse), warehouse.catalog.version().current_vn
    for text, error in BAD:
        with pytest.raises(error) as caught:
            warehouse.sql(text)
        assert caught.value.code in str(caught.value)
        assert caught.value.help, text
    assert rows(warehouse) == before
    state = warehouse.catalog.version()
    assert (state.current_vn, state.maintenance_active) == (version, False)


def test_an_unknown_column_is_told_with_its_place(warehouse: matview.Warehouse) -> None:
    with pytest.raises(errors.UnknownColumn) as caught:
        warehouse.sql("SELECT id,\n       t.vv FROM t")
    assert (caught.value.what, caught.value.where) == ("there is no column `t`.`vv`", errors.Place(2, 8))
    assert caught.value.help == "did you mean v?"
    with pytest.raises(errors.UnknownColumn) as caught:
        warehouse.sql("SELECT a.v, b.vv FROM t AS a, (SELECT v FROM t) AS b")
    assert caught.value.where == errors.Place(1, 13)


def test_what_an_update_sets_must_be_there(warehouse: matview.Warehouse) -> None:
    with pytest.raises(errors.UnknownColumn) as caught:
        warehouse.sql("UPDATE t SET vv = 1")
    assert (caught.value.what, caught.value.help) == ("t has no column 'vv'", "did you mean v?")


def test_history_tells_what_went_wrong(warehouse: matview.Warehouse) -> None:
    """In Matview's own words; of errors of others only their kind, for nobody knows what their texts give away."""
    with pytest.raises(errors.DuplicateKey):
        warehouse.sql("INSERT INTO t VALUES (1, 1)")
    with pytest.raises(RuntimeError), warehouse.transaction():
        raise RuntimeError("the password is secret")
    warehouse.sql("DELETE FROM t WHERE id = 99")
    warehouse.transaction().rollback()
    told = [(record.state, record.error) for record in warehouse.history(4)]
    assert told == [
        ("aborted", None),
        ("aborted", None),
        ("aborted", "RuntimeError"),
        ("aborted", '[MV201] t has a row with the key {"id":1} already'),
    ]
    assert len(warehouse.history(None)) > 4


@pytest.mark.conforms("Q4", "Q6")
def test_impossible_cells(warehouse: matview.Warehouse, spark: Any) -> None:
    gone = spark.createDataFrame([(9,)], "id INT")
    other = spark.createDataFrame([(1, 11, -1)], "id INT, v INT, weight INT")
    twice = spark.createDataFrame([(1, 10, -1), (1, 10, -1)], "id INT, v INT, weight INT")
    before = rows(warehouse)
    for change in (
        lambda tx: tx.delete("t", gone),
        lambda tx: tx.apply("t", other),
        lambda tx: tx.apply("t", twice),
    ):
        with pytest.raises(errors.ImpossibleOperation), warehouse.transaction() as tx:
            change(tx)
    assert rows(warehouse) == before


def test_a_failed_statement_leaves_the_transaction_usable(warehouse: matview.Warehouse) -> None:
    with warehouse.transaction() as tx:
        tx.sql("UPDATE t SET v = 11 WHERE id = 1")
        with pytest.raises(errors.DuplicateKey):
            tx.sql("INSERT INTO t VALUES (2, 0)")
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 1")
    assert rows(warehouse) == [(1, 12), (2, 20), (3, 30)]


def test_an_exception_rolls_everything_back(warehouse: matview.Warehouse) -> None:
    tx = warehouse.transaction()

    def fail() -> None:
        with tx:
            tx.sql("DELETE FROM t")
            tx.sql("CREATE TABLE u (x INT)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert rows(warehouse) == [(1, 10), (2, 20), (3, 30)]
    assert [table.name for table in warehouse.tables()] == ["t"]
    with pytest.raises(errors.TransactionOver):
        tx.sql("DELETE FROM t")


def test_subqueries_read_the_transactions_own_state(warehouse: matview.Warehouse) -> None:
    with warehouse.transaction() as tx:
        tx.sql("CREATE TABLE u (id INT, w INT)")
        tx.sql("INSERT INTO u SELECT id, v * 2 FROM t")
        tx.sql("DELETE FROM t WHERE id IN (SELECT id FROM u WHERE w > 50)")
        tx.sql("UPDATE t SET v = (SELECT max(w) FROM u) WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.w = 40)")
        assert sorted(tuple(r) for r in tx.sql("SELECT id, v FROM t").collect()) == [(1, 10), (2, 60)]
    assert rows(warehouse, "u") == [(1, 20), (2, 40), (3, 60)]


def test_merge_with_every_clause(warehouse: matview.Warehouse) -> None:
    warehouse.sql("""
        MERGE INTO t USING (VALUES (1, 100), (2, -1), (4, 40), (5, -5)) AS s(k, w) ON t.id = s.k
        WHEN MATCHED AND s.w < 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = t.v + s.w
        WHEN NOT MATCHED AND s.w > 0 THEN INSERT (id, v) VALUES (s.k, s.w)
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0
    """)
    assert rows(warehouse) == [(1, 110), (3, 0), (4, 40)]


def test_no_version_is_spent_on_nothing(warehouse: matview.Warehouse) -> None:
    version = warehouse.catalog.version().current_vn
    assert str(warehouse.sql("UPDATE t SET v = 0 WHERE id = 77")) == "nothing changed"
    assert warehouse.catalog.version().current_vn == version


def test_drop_is_seen_from_its_version_on(warehouse: matview.Warehouse) -> None:
    session = warehouse.session()
    warehouse.sql("DROP TABLE t")
    with pytest.raises(errors.UnknownTable):
        warehouse.sql("SELECT * FROM t")
    warehouse.sql("CREATE TABLE t (other STRING)")
    assert rows(warehouse) == []
    assert rows(session) == [(1, 10), (2, 20), (3, 30)]


def test_truncate_describe_show(warehouse: matview.Warehouse) -> None:
    assert [tuple(r) for r in warehouse.sql("DESCRIBE t").collect()] == [
        ("id", "int", False, True),
        ("v", "int", True, False),
    ]
    assert [r["table"] for r in warehouse.sql("SHOW TABLES").collect()] == ["t"]
    assert str(warehouse.sql("TRUNCATE TABLE t")).startswith("3 deleted")
    assert rows(warehouse) == []


def test_a_forgotten_transaction_gives_its_lease_back(warehouse: matview.Warehouse) -> None:
    forgotten = warehouse.transaction()
    forgotten.sql("DELETE FROM t")
    with pytest.raises(errors.MaintenanceBusy):
        warehouse.transaction(wait=0.0)
    del forgotten
    gc.collect()
    with warehouse.transaction(wait=0.0) as tx:
        tx.sql("INSERT INTO t VALUES (4, 40)")
    assert rows(warehouse) == [(1, 10), (2, 20), (3, 30), (4, 40)]


def test_subqueries_in_an_update_of_what_names_a_row(warehouse: matview.Warehouse) -> None:
    warehouse.sql("CREATE TABLE u (k INT PRIMARY KEY, w INT)")
    warehouse.sql("INSERT INTO u VALUES (1, 100), (2, 200)")
    warehouse.sql("UPDATE t SET id = coalesce((SELECT max(w) FROM u WHERE u.k = t.id), t.id), v = v + 1")
    assert rows(warehouse) == [(3, 31), (100, 11), (200, 21)]
    warehouse.sql("CREATE TABLE bag (x INT)")
    warehouse.sql("INSERT INTO bag VALUES (1), (1), (2), (7)")
    warehouse.sql("UPDATE bag AS b SET x = (SELECT sum(w) FROM u WHERE u.k = b.x) WHERE x IN (SELECT k FROM u)")
    assert rows(warehouse, "bag") == [(7,), (100,), (100,), (200,)]
    warehouse.sql(
        "MERGE INTO t USING (VALUES (3)) AS s(k) ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET id = 4, v = (SELECT max(w) FROM u WHERE u.k < s.k)"
    )
    assert rows(warehouse) == [(4, 200), (100, 11), (200, 21)]


def test_a_source_may_have_a_column_of_any_name(warehouse: matview.Warehouse) -> None:
    merge = (
        "MERGE INTO t USING (SELECT 1 AS __rid, 5 AS __x) AS s ON t.id = s.__rid WHEN MATCHED THEN UPDATE SET v = s.__x"
    )
    warehouse.sql(merge)
    assert rows(warehouse)[0] == (1, 5)
