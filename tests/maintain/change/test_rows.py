"""Which rows a statement may leave: what is told apart, what is refused, and what it reports."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any

import pytest

import matview
from matview import errors
from matview.maintain.change import meeting
from matview.storage import few as few_rows
from matview.storage import fold
from matview.storage.engine import small
from matview.storage.snapshot import Level
from matview.versions.facts import BROADCAST_ROWS

NUMBERS = count()


@pytest.fixture(scope="module")
def warehouse(spark: Any, tmp_path_factory: Any) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path_factory.mktemp("rows") / "wh", versions=3, spark=spark) as opened:
        yield opened


@pytest.fixture(params=["few", "many"])
def size(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Few rows are kept on the driver, many by Spark; what holds of the ones holds of the others."""
    if request.param == "many":
        monkeypatch.setattr(few_rows, "FEW_ROWS", -1)
    return request.param


@pytest.fixture
def table() -> str:
    """The name of a table that is the test's own."""
    return f"t{next(NUMBERS)}"


def read(warehouse: Any, table: str) -> list[Any]:
    return sorted((tuple(row) for row in warehouse.sql(f"SELECT * FROM `{table}`").collect()), key=repr)


def stored(warehouse: matview.Warehouse, table: str) -> int:
    return warehouse.versions(table).count()


# keys that stand twice ------------------------------------------------------------------------------------------------


def test_a_deleted_key_is_revived_once(warehouse: matview.Warehouse, table: str, size: str) -> None:
    warehouse.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v STRING)")
    warehouse.sql(f"INSERT INTO {table} VALUES (1, 'x'), (2, 'y')")
    warehouse.sql(f"DELETE FROM {table} WHERE id = 1")
    with pytest.raises(errors.DuplicateKey, match=r'"id":1\b'):
        warehouse.sql(f"INSERT INTO {table} VALUES (1, 'a'), (1, 'b'), (3, 'c')")
    assert read(warehouse, table) == [(2, "y")]
    source = "(VALUES (1, 'a'), (1, 'b')) s(i, w)"
    with pytest.raises(errors.DuplicateKey):
        warehouse.sql(f"MERGE INTO {table} USING {source} ON id = i WHEN NOT MATCHED THEN INSERT (id, v) VALUES (i, w)")
    warehouse.sql(f"INSERT INTO {table} VALUES (1, 'a'), (3, 'c')")
    assert read(warehouse, table) == [(1, "a"), (2, "y"), (3, "c")]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("DOUBLE", "DOUBLE('0.0')", "DOUBLE('-0.0')"),
        ("DOUBLE", "DOUBLE('NaN')", "DOUBLE('NaN')"),
        ("TIMESTAMP", "TIMESTAMP'2024-01-01 00:00:00Z'", "TIMESTAMP'2024-01-01 01:00:00+01:00'"),
        ("DATE", "DATE'9999-12-31' + 1", "DATE'+10000-01-01'"),  # Python has no such values
        ("DATE", "DATE'-0044-03-15'", "DATE'-0044-03-14' + 1"),
        ("STRING", "CAST(X'61FF' AS STRING)", "'a' || CAST(X'FF' AS STRING)"),
    ],
)
def test_keys_are_told_apart_as_spark_does(
    kind: str, one: str, other: str, warehouse: matview.Warehouse, table: str
) -> None:
    warehouse.sql(f"CREATE TABLE {table} (id {kind} PRIMARY KEY, v INT)")
    with pytest.raises(errors.DuplicateKey):
        warehouse.sql(f"INSERT INTO {table} VALUES ({one}, 1), ({other}, 2)")
    warehouse.sql(f"INSERT INTO {table} VALUES ({one}, 1)")
    with pytest.raises(errors.DuplicateKey):
        warehouse.sql(f"INSERT INTO {table} VALUES ({other}, 2)")
    warehouse.sql(f"DELETE FROM {table}")
    with pytest.raises(errors.DuplicateKey):
        warehouse.sql(f"INSERT INTO {table} VALUES ({one}, 1), ({other}, 2)")


# nulls, and other values that lie in no bounds ------------------------------------------------------------------------

BAGS = [
    ("INT", "1", "100"),
    ("STRING", "'a'", "'zz'"),
    ("DATE", "DATE'2024-01-01'", "DATE'2030-01-01'"),
    ("DECIMAL(9,2)", "1.5", "100.25"),
    ("DOUBLE", "1.5", "DOUBLE('NaN')"),
    ("TIMESTAMP", "TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP'2030-01-01 00:00:00'"),
]


@pytest.mark.parametrize(("kind", "low", "high"), BAGS)
def test_a_null_is_found_in_every_file(
    kind: str, low: str, high: str, warehouse: matview.Warehouse, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.sql(f"CREATE TABLE {table} (x {kind})")
    warehouse.sql(f"INSERT INTO {table} VALUES ({low}), (NULL)")
    warehouse.sql(f"INSERT INTO {table} VALUES ({high}), (NULL)")
    monkeypatch.setattr(few_rows, "FEW_ROWS", -1)
    assert stored(warehouse, table) == 3
    assert str(warehouse.sql(f"UPDATE {table} SET x = {high} WHERE x IS NULL")).startswith("2 inserted, 2 deleted")
    counted = warehouse.sql(f"SELECT count(*), count_if(x <=> {high}) FROM {table}").collect()
    assert [tuple(row) for row in counted] == [(4, 3)]


def test_a_view_meets_values_that_python_lacks(warehouse: matview.Warehouse, table: str) -> None:
    warehouse.sql(f"CREATE TABLE {table} (d DATE, s STRING, v INT)")
    query = f"SELECT a.d, a.s, a.v, b.v AS w FROM {table} a JOIN {table} b ON a.d = b.d AND a.s = b.s"
    warehouse.sql(f"CREATE MATERIALIZED VIEW {table}_view AS {query}")
    for number in range(2):
        warehouse.sql(f"INSERT INTO {table} VALUES (DATE'9999-12-31' + 1, CAST(X'61FF' AS STRING), {number})")
        warehouse.refresh(f"{table}_view", mode="delta")
        assert warehouse.diff(f"{table}_view").count() == 0
    assert warehouse.sql(f"SELECT v, w FROM {table}_view").count() == 4


def test_few_rows_come_back_as_they_went(warehouse: matview.Warehouse, spark: Any, table: str) -> None:
    """Values that other ways to Python lose: beyond its years, negative zero, times that a zone has twice."""
    columns = {
        "i": "TINYINT(-128)", "b": "X'00FF'", "d": "DATE'9999-12-31' + 1", "e": "DATE'0001-01-01'",
        "t": "TIMESTAMP'2024-10-27 00:30:00Z'", "u": "TIMESTAMP'2024-10-27 01:30:00Z'", "o": "TIMESTAMP'0001-01-03'",
        "n": "TIMESTAMP_NTZ'2024-10-27 02:30:00'", "z": "DOUBLE('-0.0')", "q": "FLOAT('NaN')", "f": "TRUE",
        "m": "CAST('12345678901234567890.123456789' AS DECIMAL(38,9))",
        "s": "'\\u00e9\\u0000x'", "nil": "CAST(NULL AS INT)",
    }  # fmt: skip
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        names = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        source = spark.sql(f"SELECT {names}")
        kinds = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in source.schema.fields)
        warehouse.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, {kinds})")
        warehouse.sql(f"INSERT INTO {table} SELECT 1, {names}")
        for name, sql in columns.items():
            text = f"SELECT string({name}), string({sql}), {name} <=> ({sql}) FROM {table}"
            (found,) = warehouse.sql(text).collect()
            assert found[0] == found[1] and found[2], name
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


# MERGE that meets a row twice -----------------------------------------------------------------------------------------

AMBIGUOUS = [
    ("(1, 10), (1, 20)", "UPDATE SET v = w"),  # one change is none: together they net to one update
    ("(1, 10), (1, 10)", "UPDATE SET v = w"),  # both are
    ("(1, 10), (1, 20)", "DELETE"),
    ("(1, 20), (1, 30)", "UPDATE SET id = w, v = 0"),
]


@pytest.mark.parametrize("key", ["INT PRIMARY KEY", "INT"])
def test_a_row_met_twice_is_ambiguous(key: str, warehouse: matview.Warehouse, table: str, size: str) -> None:
    warehouse.sql(f"CREATE TABLE {table} (id {key}, v INT)")
    warehouse.sql(f"INSERT INTO {table} VALUES (1, 10), (2, 20)")
    for source, act in AMBIGUOUS:
        merge = f"MERGE INTO {table} USING (VALUES {source}) s(i, w) ON id = i WHEN MATCHED"
        with pytest.raises(errors.AmbiguousMerge):
            warehouse.sql(f"{merge} THEN {act}")
    warehouse.sql(f"{merge} AND w > 20 THEN UPDATE SET v = w")  # a row that no clause applies to is not met
    assert read(warehouse, table) == [(1, 30), (2, 20)]


def test_rows_that_repeat_are_met_once(warehouse: matview.Warehouse, table: str, size: str) -> None:
    """In a bag two equal rows are two rows, which one row of the source may both meet."""
    warehouse.sql(f"CREATE TABLE {table} (x INT, y INT)")
    warehouse.sql(f"INSERT INTO {table} VALUES (1, 1), (1, 1), (NULL, 2)")
    warehouse.sql(
        f"MERGE INTO {table} USING (VALUES (1, 7), (5, 5)) s(i, w) ON x = i WHEN MATCHED THEN UPDATE SET y = w "
        "WHEN NOT MATCHED THEN INSERT (x, y) VALUES (i, w) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET y = 0"
    )
    assert read(warehouse, table) == [(1, 7), (1, 7), (5, 5), (None, 0)]


# reports and messages -------------------------------------------------------------------------------------------------


def test_a_restored_row_counts_as_deleted(warehouse: matview.Warehouse, table: str) -> None:
    warehouse.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    warehouse.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    warehouse.sql(f"DELETE FROM {table} WHERE id = 1")
    with warehouse.transaction() as tx:
        tx.sql(f"INSERT INTO {table} VALUES (1, 10), (3, 30)")
        assert str(tx.sql(f"DELETE FROM {table}")) == "3 deleted"
        assert read(tx, table) == []
    assert read(warehouse, table) == []


def test_any_column_can_be_named_in_an_error(warehouse: matview.Warehouse, table: str) -> None:
    warehouse.sql(f"CREATE TABLE {table} (`k:\"1'` INT PRIMARY KEY, `v:w` INT NOT NULL)")
    with pytest.raises(errors.BadValue, match=r"column 'v:w' takes no nulls; a row .*5"):
        warehouse.sql(f"INSERT INTO {table} VALUES (5, NULL)")
    with pytest.raises(errors.NullKey, match="k:"):
        warehouse.sql(f"INSERT INTO {table} VALUES (NULL, 1)")


@pytest.mark.parametrize("weight", ["CAST(NULL AS INT)", "0.5", "DOUBLE('-1.5')", "DOUBLE('NaN')", "1e300"])
def test_a_weight_is_a_whole_number(weight: str, warehouse: matview.Warehouse, spark: Any, table: str) -> None:
    warehouse.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    changes = spark.sql(f"SELECT 1 AS id, 1 AS v, {weight} AS weight UNION ALL SELECT 2, 2, 1")
    with pytest.raises(errors.BadValue), warehouse.transaction() as tx:
        tx.apply(table, changes)
    assert read(warehouse, table) == []


def test_weights_of_any_number_type(warehouse: matview.Warehouse, spark: Any, table: str) -> None:
    warehouse.sql(f"CREATE TABLE {table} (x INT)")
    with warehouse.transaction() as tx:
        for kind in ("TINYINT", "BIGINT", "DECIMAL(5,2)", "DOUBLE"):
            tx.apply(table, spark.sql(f"SELECT 1 AS x, CAST(2 AS {kind}) AS Weight"))
        with pytest.raises(errors.TypeMismatch):
            tx.apply(table, spark.sql("SELECT 1 AS x, 'two' AS weight"))
    assert len(read(warehouse, table)) == 8


def test_a_table_may_have_a_column_called_weight(warehouse: matview.Warehouse, spark: Any, table: str) -> None:
    warehouse.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, weight INT)")
    with warehouse.transaction() as tx:
        tx.apply(table, spark.sql("SELECT 1 AS id, 70 AS weight, 1 AS __weight"))
        with pytest.raises(errors.UnknownColumn, match="__weight"):
            tx.apply(table, spark.sql("SELECT 2 AS id, 80 AS weight"))
    assert read(warehouse, table) == [(1, 70)]


# how it is written ----------------------------------------------------------------------------------------------------


def test_new_tuples_pass_by_what_is_staged(
    warehouse: matview.Warehouse, spark: Any, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An insert after an update rewrites the overlay only if it revives something, and new tuples as they come."""
    warehouse.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    warehouse.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2), (3, 3)")
    warehouse.sql(f"DELETE FROM {table} WHERE id = 3")
    monkeypatch.setattr(few_rows, "FEW_ROWS", 3)
    monkeypatch.setattr(meeting, "BULK_ROWS", 3)
    with warehouse.transaction() as tx:
        tx.sql(f"UPDATE {table} SET v = 10 WHERE id = 1")
        (before,) = tx.tables[table].staged
        tx.sql(f"INSERT INTO {table} VALUES (4, 4)")
        assert before in tx.tables[table].staged
        tx.insert(table, spark.range(3, 103, 1, 4).selectExpr("int(if(id = 4, 0, id)) AS id", "int(id) AS v"))
        levels = [f.level for f in tx.tables[table].staged]
        assert before not in tx.tables[table].staged
        assert (levels.count(Level.OVERLAY), levels.count(Level.BASE)) == (1, 1 + 4)
    found = read(warehouse, table)
    assert len(found) == 103 and {(1, 10), (2, 2), (3, 3), (4, 4)} <= set(found)


def test_a_load_is_clustered(
    warehouse: matview.Warehouse, spark: Any, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "FEW_ROWS", 3)
    monkeypatch.setattr(meeting, "SMALL_FILE_ROWS", 7_000)
    monkeypatch.setattr(fold, "ROWS_PER_CLUSTER", 4_000)
    warehouse.sql(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, day INT) CLUSTER BY (day)")
    with warehouse.transaction() as tx:
        tx.insert(table, spark.range(16_000).selectExpr("id", "int(hash(id) % 1000) AS day"))
        files = sorted(tx.tables[table].staged, key=lambda f: f.minimum["day"])
        assert len(files) == 4
        assert all(one.maximum["day"] <= other.minimum["day"] for one, other in pairwise(files))


def test_only_what_is_small_is_sent_everywhere(spark: Any) -> None:
    some = spark.range(1)
    assert small(some, BROADCAST_ROWS + 1) is some
    assert small(some, BROADCAST_ROWS) is not some


def test_small_changes_start_few_jobs(warehouse: matview.Warehouse, spark: Any, table: str) -> None:
    """One job for the rows given, two for the tuples they meet, and the write, which may need one before."""
    warehouse.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    warehouse.sql(f"INSERT INTO {table} VALUES (1, 1), (5, 5)")
    warehouse.sql(f"UPDATE {table} SET v = 2 WHERE id = 1")
    changes = spark.sql("SELECT * FROM VALUES (1, 2, -1), (1, 3, 1), (3, 3, 1) AS s(id, v, weight)")
    with warehouse.transaction() as tx:
        assert jobs(spark, lambda: tx.sql(f"INSERT INTO {table} VALUES (9, 9)")) <= 2
        assert jobs(spark, lambda: tx.sql(f"INSERT INTO {table} VALUES (2, 2)")) <= 4
        assert jobs(spark, lambda: tx.apply(table, changes)) <= 5
        assert jobs(spark, lambda: tx.sql(f"INSERT INTO {table} SELECT 0, 0 WHERE FALSE")) <= 1
    assert read(warehouse, table) == [(1, 3), (2, 2), (3, 3), (5, 5), (9, 9)]


def jobs(spark: Any, act: Any) -> int:
    """How many Spark jobs an act starts: their numbers follow one another."""

    def now(group: str) -> int:
        spark.sparkContext.setJobGroup(group, "")
        spark.sparkContext.parallelize([1], 1).count()
        found = max(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        return int(found)

    before = now(f"before {id(act)}")
    act()
    return now(f"after {id(act)}") - before - 1


def test_dates_that_python_has_none_of(warehouse: matview.Warehouse) -> None:
    """As keys that are looked up, met, and told of."""
    warehouse.sql("CREATE TABLE far (d DATE PRIMARY KEY, v INT)")
    warehouse.sql("INSERT INTO far VALUES (DATE'+10000-01-01', 1)")
    warehouse.sql("INSERT INTO far VALUES (DATE'+20000-01-01', 2), (DATE'2026-01-01', 3)")
    warehouse.sql("CREATE MATERIALIZED VIEW further AS SELECT d, sum(v) AS v FROM far GROUP BY d")
    warehouse.sql("UPDATE far SET v = 5 WHERE d = DATE'+10000-01-01'")
    warehouse.refresh("further")
    assert warehouse.diff("further").isEmpty()
    with pytest.raises(errors.DuplicateKey):
        warehouse.sql("INSERT INTO far VALUES (DATE'+10000-01-01', 1)")
    with pytest.raises(errors.DuplicateKey):
        warehouse.sql("INSERT INTO far VALUES (DATE'+30000-01-01', 1), (DATE'+30000-01-01', 2)")
