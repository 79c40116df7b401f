"""Maps, variants and numbers inside of anything: what is written is what is read, and equal is what has equal parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import matview
from matview.versions.comparable import comparable_sql, is_itself

FIRST, LATER = "TIMESTAMP '2024-01-01 00:00:00.123001'", "TIMESTAMP '2024-01-01 00:00:00.123002'"
DISTINCT = {
    "map<string,int>": ["map('a', 1)", "map('a', NULL)", "map('a', 0)", "map()", "NULL", "map('a', 1, 'b', NULL)"],
    "map<string,timestamp>": [f"map('a', {FIRST})", f"map('a', {LATER})"],
    "map<string,map<string,int>>": ["map('a', map('x', 1))", "map('a', map('x', NULL))", "map('a', NULL)"],
    "array<map<string,int>>": ["array(map('a', NULL))", "array(map('a', 0))", "array(NULL)", "array()"],
    "struct<m:map<int,int>>": [f"named_struct('m', {m})" for m in ("map(1, 0)", "map(1, NULL)", "NULL")],
    "double": ["-0.0D", "1.5D", "double('NaN')", "NULL"],
    "array<double>": ["array(-0.0D)", "array(double('NaN'))"],
    "map<int,double>": ["map(1, -0.0D)", "map(1, double('NaN'))"],
}  # fmt: skip
"""By type, values of which no two are equal."""
SAME = {
    "map<string,int>": ("map('a', 1, 'b', NULL)", "map('b', NULL, 'a', 1)"),
    "array<map<string,int>>": ("array(map('a', 1, 'b', 2))", "array(map('b', 2, 'a', 1))"),
    "struct<m:map<int,int>>": ("named_struct('m', map(1, 2, 3, 4))", "named_struct('m', map(3, 4, 1, 2))"),
    "map<string,map<int,int>>": ("map('x', map(1, 2, 3, 4))", "map('x', map(3, 4, 1, 2))"),
    "double": ("0.0D", "-0.0D"),
}
"""By type, two ways to write one value."""


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", spark=spark) as opened:
        yield opened


def test_forms_tell_values_apart(spark: Any) -> None:
    """All laws in one query: each form is equal to itself and to no other of its type, and can be ordered."""
    items = []
    for kind, values in DISTINCT.items():
        forms = [comparable_sql(f"CAST({value} AS {kind})", kind) for value in values]
        for i, one in enumerate(forms):
            items += [
                (f"{kind}: {values[i]}, {values[j]}", f"({one}) <=> ({other})", i == j) for j, other in enumerate(forms)
            ]
    for kind, (value, again) in SAME.items():
        one, other = (comparable_sql(f"CAST({sql} AS {kind})", kind) for sql in (value, again))
        items += [(f"{kind}: {value}", f"({one}) <=> ({other})", True), (kind, f"({one}) < ({other})", False)]
    found = spark.sql("SELECT " + ", ".join(sql for _, sql, _ in items)).collect()[0]
    assert {what: got for (what, _, _), got in zip(items, found, strict=True)} == {w: wanted for w, _, wanted in items}


def test_grouping_leaves_only_plain_values_as_they_are() -> None:
    assert is_itself("struct<a:array<string>,b:decimal(10,2)>")
    assert not any(map(is_itself, ("float", "array<double>", "map<int,int>", "struct<v:variant>")))


def texts(rows: Any) -> list[str]:
    """Python says 0.0 == -0.0 and tells no NaN from another: texts do."""
    return sorted(str(tuple(row)) for row in rows.collect())


def test_rows_of_a_bag_are_as_they_were_written(warehouse: matview.Warehouse, spark: Any) -> None:
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(DISTINCT))
    most = max(map(len, DISTINCT.values()))
    rows = [[f"CAST({v[n % len(v)]} AS {kind})" for kind, v in DISTINCT.items()] for n in range(most)]
    source = " UNION ALL ".join(f"SELECT {n} AS n, {', '.join(row)}" for n, row in enumerate(rows))
    wanted = spark.sql(source)
    warehouse.sql(f"CREATE TABLE bag (n INT, {columns})")
    warehouse.sql(f"CREATE TABLE keyed (n INT PRIMARY KEY, {columns})")
    for table in ("bag", "keyed"):
        warehouse.sql(f"INSERT INTO {table} {source}")
        warehouse.sql(f"UPDATE {table} SET n = n + 100")  # of a key, or of a bag: rows go and come
        warehouse.sql(f"UPDATE {table} SET n = n - 100")
        assert texts(warehouse.sql(f"SELECT * FROM {table}")) == texts(wanted)
        with warehouse.transaction() as tx:
            tx.delete(table, warehouse.sql(f"SELECT * FROM {table} WHERE n > 0"))
        assert warehouse.sql(f"SELECT n FROM {table}").collect() == [(0,)]


def test_equal_rows_of_a_bag_are_one(warehouse: matview.Warehouse) -> None:
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(SAME))
    warehouse.sql(f"CREATE TABLE bag ({columns})")
    for turn in (0, 1):
        warehouse.sql(f"INSERT INTO bag SELECT {', '.join(pair[turn] for pair in SAME.values())}")
    assert warehouse.versions("bag").count() == 1
    assert warehouse.sql("SELECT * FROM bag").count() == 2
