"""A view shows what Spark's own run of its text shows, when it is made and after each change, whatever types meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import matview
from matview.errors import BadValue, NotIncremental

MOST = 2**63 - 1
TABLES = (
    "CREATE TABLE codes (id INT, s STRING)",
    "CREATE TABLE days (d DATE, i INT)",
    "CREATE TABLE moments (ts TIMESTAMP, m DECIMAL(6,2))",
    "CREATE TABLE pairs (i INT, x INT)",
    "CREATE TABLE numbers (id INT, g INT, x BIGINT, m DECIMAL(25,5), p DECIMAL(15,2), PRIMARY KEY (id))",
    "CREATE TABLE words (w STRING, n INT, PRIMARY KEY (w))",
    "CREATE TABLE uses (w STRING, n INT)",
)
FIRST = (
    "INSERT INTO codes VALUES (1, '1'), (2, '01')",
    "INSERT INTO days VALUES (DATE '2024-01-01', 1)",
    "INSERT INTO moments VALUES (TIMESTAMP '2024-01-01 00:00:00', 1.00)",
    "INSERT INTO pairs VALUES (1, 10), (7, 2), (7, 8), (2, 1)",
    f"INSERT INTO numbers VALUES (1, 1, {MOST}, 1, 1.00), (2, 2, -{MOST}, 1, 2.00), (3, 3, 5, 2, 0.07)",
    "INSERT INTO words VALUES ('${spark.app.name}', 1)",
)
LATER = (
    (
        "INSERT INTO codes VALUES (3, '2'), (4, ' 1')",
        "INSERT INTO days VALUES (DATE '2024-01-02', 2), (DATE '2024-01-03', 3)",
        "INSERT INTO pairs VALUES (9, 3), (1, 11)",
        "UPDATE numbers SET x = -x WHERE id <= 2",
    ),
    (
        "INSERT INTO moments VALUES (TIMESTAMP '2024-01-02 00:00:00', 2.00)",
        "DELETE FROM codes WHERE id = 1",
        f"INSERT INTO numbers VALUES (4, 4, {MOST}, 1, 3.33), (5, 4, -{MOST}, 1, 3.33), (6, 3, 4, 1, 1.01)",
        "INSERT INTO uses SELECT w, 2 FROM words WHERE w = '${spark.app.name}'",
    ),
    (
        "DELETE FROM days WHERE i = 1",
        "DELETE FROM pairs WHERE i = 7",
        "DELETE FROM numbers WHERE id IN (1, 6)",
    ),
)
"""Each part of a union changes alone at some time."""
BOTH = "(SELECT d AS x, i AS z FROM days UNION ALL SELECT ts, m FROM moments)"
VIEWS = {
    "by_code": "SELECT a.id, (SELECT count(*) FROM codes b WHERE b.s = a.id) AS n FROM codes a",
    "in_code": "SELECT id FROM codes WHERE id IN (SELECT s FROM codes) OR id = 2",
    "as_text": f"SELECT CAST(x AS STRING) AS y, CAST(z AS STRING) AS w FROM {BOTH}",
    "filtered": f"SELECT x, z FROM {BOTH} WHERE CAST(z AS STRING) = '2.00'",
    "without": "SELECT d AS x, i AS z FROM days EXCEPT ALL SELECT ts, m FROM moments",
    "shared": "SELECT i AS z FROM days INTERSECT SELECT m FROM moments",
    "counted": "SELECT x, count(*) AS n FROM (SELECT s AS x FROM codes UNION ALL SELECT i FROM days) GROUP BY x",
    "key_first": "SELECT i AS x, count(*) AS n FROM pairs GROUP BY i, x HAVING x > 5",
    "name_first": "SELECT i, max(x) AS x FROM pairs GROUP BY i HAVING x > 5",
    "average": "SELECT g, avg(x) AS a, avg(p) AS b FROM numbers GROUP BY g",
    "long_average": "SELECT avg(m) AS a, avg(x) AS b FROM numbers",
    "ratio": "SELECT g, sum(x) AS s, sum(x) / 2 AS h, sum(p) / count(*) AS r FROM numbers GROUP BY g",
    "listed": "SELECT id, collect_list(x) OVER (PARTITION BY g ORDER BY id DESC) AS l FROM numbers",
    "used": "SELECT a.w, a.n, b.n AS m FROM words a JOIN uses b ON a.w = b.w",
    "qualified": "SELECT i, row_number() OVER (PARTITION BY i ORDER BY x) AS n FROM pairs QUALIFY n > 0",
}


def bag(rows: list[Any]) -> Counter[str]:
    return Counter(str(tuple(row)) for row in rows)


def check(warehouse: matview.Warehouse, views: Mapping[str, str], when: str) -> None:
    for name, query in views.items():
        shown, wanted = (bag(warehouse.sql(text).collect()) for text in (f"SELECT * FROM {name}", query))
        assert shown == wanted, f"{name} {when}"


@pytest.mark.timeout(600)
def test_views_show_what_spark_shows(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        for statement in (*TABLES, *FIRST):
            warehouse.sql(statement)
        for name, query in VIEWS.items():
            warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {query}")
        check(warehouse, VIEWS, "when it is made")
        for statements in LATER:
            for statement in statements:
                warehouse.sql(statement)
            warehouse.refresh(*VIEWS)
            check(warehouse, VIEWS, f"after {statements}")
        assert [tuple(row) for row in warehouse.sql("SELECT * FROM used").collect()] == [("${spark.app.name}", 1, 2)]


NESTED = {
    "grouped": "SELECT st, count(*) AS n FROM nested GROUP BY st",
    "without": "SELECT xs FROM nested EXCEPT SELECT array(7)",
    "in_list": "SELECT id FROM nested WHERE xs IN (SELECT xs FROM nested WHERE id = 1) OR id = 3",
    "of_maps": "SELECT collect_list(mp) AS l FROM nested WHERE id = 1",
    "fields": "SELECT id, st.* FROM nested",
    "entries": "SELECT id, k, v FROM nested LATERAL VIEW OUTER explode(map_filter(mp, (k, v) -> v > 0)) t AS k, v",
    "copied": "SELECT * FROM nested",
}
"""What cannot be a key, or has no order: maintained where a rule does without, else computed anew, with the reason."""


@pytest.mark.timeout(600)
def test_nested_types_are_no_reason_to_refuse(spark: Any, tmp_path: Path) -> None:
    columns = "id INT, st STRUCT<a: INT, b: STRING>, xs ARRAY<INT>, mp MAP<STRING, INT>"
    one = "named_struct('a', 1, 'b', 'x'), array(1, 2), map('k', 1)"
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql(f"CREATE TABLE nested ({columns}, PRIMARY KEY (id))")
        warehouse.sql(f"INSERT INTO nested VALUES (1, {one}), (2, {one}), (3, NULL, NULL, NULL)")
        for name, query in {**NESTED, "copied": "TABLE nested"}.items():
            warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        with pytest.raises(NotIncremental, match="told apart by a struct"):
            warehouse.sql(f"CREATE MATERIALIZED VIEW strict REFRESH POLICY INCREMENTAL STRICT AS {NESTED['grouped']}")
        warehouse.sql("DELETE FROM nested WHERE id = 2")
        warehouse.refresh(*NESTED)
        check(warehouse, NESTED, "after a delete")
        reasons = {status.name for status in warehouse.views() if status.reason}
    assert reasons == {"grouped", "in_list", "of_maps", "fields"}


def test_a_subquery_of_several_rows_is_told_with_its_view(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.sql("CREATE TABLE items (i INT)")
        warehouse.sql("INSERT INTO items VALUES (1)")
        warehouse.sql("CREATE MATERIALIZED VIEW only AS SELECT (SELECT i FROM items) AS i")
        warehouse.sql("INSERT INTO items VALUES (2)")
        with pytest.raises(BadValue, match=r"view only: .*more than one row"):
            warehouse.refresh("only")
