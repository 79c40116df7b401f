"""What goes in comes out: every type, null everywhere but in the key, names of any kind."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import matview
from matview.errors import BadDefinition, BadValue, TypeMismatch
from matview.storage.delta import DeltaFiles
from matview.storage.snapshot import DataFile

ATOMIC = {
    "boolean": ("true", "false"),
    "tinyint": ("CAST(-128 AS TINYINT)", "CAST(127 AS TINYINT)"),
    "smallint": ("CAST(-32768 AS SMALLINT)", "CAST(7 AS SMALLINT)"),
    "int": ("-2147483648", "2147483647"),
    "bigint": ("-9223372036854775807", "9223372036854775807"),
    "float": ("CAST('NaN' AS FLOAT)", "CAST(1.5 AS FLOAT)"),
    "double": ("CAST('Infinity' AS DOUBLE)", "CAST(-0.1 AS DOUBLE)"),
    "decimal(38,10)": ("1234567890123456789012345678.0123456789", "-0.0000000001"),
    "decimal(5,0)": ("99999", "-1"),
    "string": ("'grüße {x} \\'quoted\\''", "''"),
    "varchar(5)": ("'abcde'", "''"),
    "char(4)": ("'ab'", "'abcd'"),
    "binary": ("X'00FF10'", "X''"),
    "date": ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    "timestamp": ("TIMESTAMP '2024-03-31 02:30:00.123456'", "TIMESTAMP '1969-12-31 23:59:59.999999'"),
    "timestamp_ntz": ("TIMESTAMP_NTZ '2024-03-31 02:30:00.123456'", "TIMESTAMP_NTZ '1900-01-01 00:00:00'"),
    "interval day to second": ("INTERVAL '3 04:05:06.000007' DAY TO SECOND", "INTERVAL '-1' DAY"),
    "interval year to month": ("INTERVAL '2-3' YEAR TO MONTH", "INTERVAL '-5' MONTH"),
    "array<int>": ("array(1, NULL, 3)", "array()"),
    "map<string,decimal(10,2)>": ("map('a', 1.10, 'b', NULL)", "map()"),
    "struct<x:int,y:array<string>>": ("named_struct('x', 1, 'y', array('p'))", "named_struct('x', NULL, 'y', NULL)"),
}


def plain(value: object) -> object:
    return "NaN" if value != value else value


def shown(kind: str, sql: str) -> str:
    """Python has no value for year-month intervals: they are compared as text."""
    return f"CAST({sql} AS STRING)" if kind.startswith("interval") else sql


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "bag"])
def test_every_type_comes_back_exactly(keyed: bool, spark: Any, tmp_path: Path) -> None:
    columns = ", ".join(f"c{i} {kind.upper()}" for i, kind in enumerate(ATOMIC))
    rows = {
        1: [pair[0] for pair in ATOMIC.values()],
        2: [pair[1] for pair in ATOMIC.values()],
        3: ["NULL"] * len(ATOMIC),
    }
    source = " UNION ALL ".join(f"SELECT {number}, {', '.join(values)}" for number, values in rows.items())
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql(f"CREATE TABLE t (id INT, {columns}{', PRIMARY KEY (id)' if keyed else ''})")
        warehouse.sql(f"INSERT INTO t {source}")
        session = warehouse.session()
        if keyed:
            warehouse.sql("UPDATE t SET c3 = 5 WHERE id <> 2")
        warehouse.sql("DELETE FROM t WHERE id = 2")
        read = ", ".join(shown(kind, f"c{i}") for i, kind in enumerate(ATOMIC))
        got = {row[0]: [plain(v) for v in row[1:]] for row in session.sql(f"SELECT id, {read} FROM t").collect()}
        for number, values in rows.items():
            casts = [shown(kind, f"CAST({v} AS {kind})") for kind, v in zip(ATOMIC, values, strict=True)]
            wanted = [plain(v) for v in spark.sql(f"SELECT {', '.join(casts)}").collect()[0]]
            assert got[number] == ["ab  " if v == "ab" else v for v in wanted]  # char(4) is padded
        assert_known_as_written(warehouse, "t")
        types = dict(warehouse.sql("SELECT * FROM t").dtypes)
        assert [types[f"c{i}"] for i in (7, 14, 15, 16)] == [
            "decimal(38,10)",
            "timestamp",
            "timestamp_ntz",
            "interval day to second",
        ]


def assert_known_as_written(warehouse: matview.Warehouse, name: str) -> None:
    """What a process knows of files that it has committed is what anybody reads of them in the log."""
    runtime = warehouse.runtime
    table = runtime.tables.table(warehouse.table(name), warehouse.catalog.version().versions)
    known, read = table.log.load(), DeltaFiles(table.files, list).load()
    assert (known.delta_version, known.token) == (read.delta_version, read.token)
    assert len(known.files) > 1
    assert repr(sorted(map(everything, known.files))) == repr(sorted(map(everything, read.files)))


def everything(file: DataFile) -> tuple[object, ...]:
    bounds = sorted(file.minimum.items()), sorted(file.maximum.items())
    return file.path, file.level, file.size, file.rows, *map(repr, bounds)


NAMES = [
    "plain",
    "with space",
    "dotted.name",
    "grüße",
    "select",
    "Mixed Case",
    "quo`te",
    'dou"ble',
    "comma,semi;",
    "br{ace}",
    "it's",
]


def test_names_of_any_kind(spark: Any, tmp_path: Path) -> None:
    quoted = ["`" + name.replace("`", "``") + "`" for name in NAMES]
    columns = ", ".join(f"{name} INT" for name in quoted)
    with matview.open(tmp_path / "a warehouse [1] {x}", spark=spark) as warehouse:
        warehouse.sql(f"CREATE TABLE `odd table.name` ({columns}, PRIMARY KEY ({quoted[1]}, {quoted[2]}))")
        warehouse.sql(f"INSERT INTO `odd table.name` VALUES ({', '.join(str(i) for i in range(len(NAMES)))})")
        session = warehouse.session()
        warehouse.sql(
            f"UPDATE `odd table.name` SET {quoted[3]} = {quoted[6]} + 100, {quoted[9]} = 7 WHERE {quoted[10]} = 10"
        )
        row = warehouse.sql("SELECT * FROM `odd table.name`").collect()[0].asDict()
        assert row == {name: {3: 106, 9: 7}.get(i, i) for i, name in enumerate(NAMES)}
        assert session.sql(f"SELECT {quoted[3]} FROM `odd table.name`").collect()[0][0] == 3
        merged = (
            f"MERGE INTO `odd table.name` t USING (SELECT 1 AS x) s ON t.{quoted[1]} = s.x WHEN MATCHED THEN DELETE"
        )
        warehouse.sql(merged)
        assert warehouse.sql("SELECT * FROM `odd table.name`").count() == 0


def test_values_that_do_not_fit(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(5,2), v VARCHAR(3), n INT NOT NULL, w TIMESTAMP)")
        for values, error in [
            ("1, 123456.0, 'a', 1, NULL", BadValue),
            ("1, 1.0, 'abcd', 1, NULL", BadValue),
            ("1, 1.0, 'abc', NULL, NULL", BadValue),
            ("1, 1.0, 'abc', 'x', NULL", TypeMismatch),
            ("1, 1.0, 'abc', 1, 'no time'", BadValue),
            ("1, true, 'abc', 1, NULL", TypeMismatch),
        ]:
            with pytest.raises(error):
                warehouse.sql(f"INSERT INTO t VALUES ({values})")
        assert warehouse.sql("SELECT * FROM t").count() == 0
        warehouse.sql("INSERT INTO t VALUES (1, 1.5, 'abc', 1, '2024-01-01 00:00:00')")
        row = warehouse.sql("SELECT * FROM t").collect()[0]
        assert row["d"] == Decimal("1.50")
        assert row["w"] == dt.datetime(2024, 1, 1)


@pytest.mark.parametrize(
    "definition",
    [
        "(__x INT)",
        "(a INT, A INT)",
        "(a INT, PRIMARY KEY (b))",
        "(a MAP<INT,INT>, PRIMARY KEY (a))",
        "(a INT CHECK (a > 0))",
    ],
)
def test_definitions_that_cannot_be(definition: str, spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        with pytest.raises(BadDefinition):
            warehouse.sql(f"CREATE TABLE t {definition}")
        assert warehouse.tables() == []


ODD_FIELDS = "STRUCT<`a b`: INT, `c.d`: STRING, `e``f`: ARRAY<STRUCT<`g:h`: DOUBLE>>, plain: MAP<STRING, INT>>"


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "bag"])
def test_fields_of_any_name(keyed: bool, spark: Any, tmp_path: Path) -> None:
    value = "named_struct('a b', 1, 'c.d', 'x', 'e`f', array(named_struct('g:h', 0.5D)), 'plain', map('k', NULL))"
    with matview.open(tmp_path / "wh [1] {x}", spark=spark) as warehouse:
        warehouse.sql(f"CREATE TABLE t (id INT{' PRIMARY KEY' * keyed}, s {ODD_FIELDS})")
        warehouse.sql(f"INSERT INTO t SELECT 1, {value}")
        warehouse.sql("UPDATE t SET id = id + 1 WHERE s.`a b` = 1 AND s.`c.d` = 'x'")
        warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT id, s, s.`e``f` AS e FROM t")
        found = warehouse.sql("SELECT * FROM v").collect()
        assert found == spark.sql(f"SELECT 2, s, s.`e``f` FROM (SELECT {value} AS s)").collect()
        with warehouse.session() as session:
            text = session.text("SELECT * FROM v", "spark")  # whose paths have what Spark takes for wildcards
            assert spark.sql(text).collect() == found


def test_a_row_of_a_bag_that_is_repeated_in_parts(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql("CREATE TABLE bag (x INT)")
        with warehouse.transaction() as tx:
            tx.apply("bag", spark.sql("SELECT 1 AS x, 200001L AS weight UNION ALL SELECT 2, 3"))
        assert warehouse.sql("SELECT x FROM bag WHERE x = 1").count() == 200001
        assert warehouse.sql("SELECT x FROM bag WHERE x = 2").collect() == [(2,)] * 3
