"""A clause that is parsed is heard or refused, never dropped: per kind of statement, texts with one clause too many."""

from __future__ import annotations

import pytest
from sqlglot import exp

from matview.errors import BadDefinition, MatviewError, SqlSyntaxError, UnsupportedStatement
from matview.sql import statements as st
from matview.sql.clauses import HEARD
from matview.sql.parse import parse, parse_one
from matview.versions.text import spark_text

from .too_much import TOO_MUCH

REFUSALS = {"MV101", "MV102", "MV107"}


@pytest.mark.parametrize("plain", TOO_MUCH)
def test_the_plain_statement_is_one(plain: str) -> None:
    parse_one(plain)


@pytest.mark.parametrize("text", [text for texts in TOO_MUCH.values() for text in texts])
def test_a_clause_too_many_is_refused(text: str) -> None:
    with pytest.raises(MatviewError) as refused:
        parse_one(text)
    assert refused.value.code in REFUSALS
    assert refused.value.help


@pytest.mark.parametrize("kind", HEARD, ids=lambda kind: kind.__name__)
def test_what_is_heard_is_a_clause(kind: type[exp.Expr]) -> None:
    """A clause that sqlglot renames would otherwise be refused, or dropped, without anybody noticing."""
    assert HEARD[kind] <= set(kind.arg_types)


def test_the_refusal_says_which() -> None:
    with pytest.raises(UnsupportedStatement, match="DELETE FROM t LIMIT 1") as refused:
        parse_one("DELETE FROM t LIMIT 1")
    assert "`LIMIT 1`" in refused.value.help


# what is heard --------------------------------------------------------------------------------------------------------


def test_insert_by_name() -> None:
    made = parse_one("INSERT INTO t BY NAME SELECT u.v, id + 1 AS id FROM u")
    assert isinstance(made, st.Insert)
    assert made.columns == ("v", "id")
    both = parse_one("INSERT INTO t BY NAME SELECT 1 AS v UNION ALL SELECT 2")
    assert isinstance(both, st.Insert)
    assert both.columns == ("v",)


def test_properties() -> None:
    made = parse_one(
        "CREATE TABLE u (id INT COMMENT 'its name', v INT) USING delta CLUSTER BY (v) COMMENT 'all of it'"
        " TBLPROPERTIES ('cluster_by' = 'id', owner = 'us')"
    )
    assert isinstance(made, st.CreateTable)
    assert made.cluster_by == ("v",)
    assert made.properties == {"comment": "all of it", "comment.id": "its name", "cluster_by": "id", "owner": "us"}


WITH = {
    "WITH c AS (SELECT 1 AS id) INSERT INTO t SELECT * FROM c": "WITH c AS (SELECT 1 AS id) SELECT * FROM c",
    "WITH c AS (SELECT 1) INSERT INTO t VALUES ((SELECT * FROM c), 2)": (
        "VALUES ((WITH c AS (SELECT 1) SELECT * FROM c), 2)"
    ),
    "WITH c AS (SELECT 1) INSERT INTO t WITH d AS (SELECT * FROM c) SELECT * FROM d": (
        "WITH c AS (SELECT 1), d AS (SELECT * FROM c) SELECT * FROM d"
    ),
    "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c UNION ALL SELECT * FROM c": (
        "WITH c AS (SELECT 1) SELECT * FROM c UNION ALL SELECT * FROM c"
    ),
}


@pytest.mark.parametrize("text", WITH)
def test_a_with_before_an_insert_is_its_querys(text: str) -> None:
    made = parse_one(text)
    assert isinstance(made, st.Insert)
    assert made.source.sql("spark") == WITH[text]


def test_a_with_before_a_change_is_in_each_of_its_queries() -> None:
    delete = parse_one("WITH c AS (SELECT 1 AS id) DELETE FROM t WHERE id IN (SELECT id FROM c) OR EXISTS(SELECT 2)")
    assert isinstance(delete, st.Delete) and delete.where is not None
    assert delete.where.sql("spark").count("WITH c AS (SELECT 1 AS id)") == 2
    update = parse_one("WITH c AS (SELECT 1 AS x) UPDATE t SET v = (SELECT x FROM c) WHERE id = (SELECT x FROM c)")
    assert isinstance(update, st.Update) and update.where is not None
    assert "(WITH c" in spark_text(update.assignments["v"]) and "WITH c" in update.where.sql("spark")
    merge = parse_one("WITH c AS (SELECT 1 AS id) MERGE INTO t USING c AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert isinstance(merge, st.Merge)
    assert spark_text(merge.source) == "(WITH c AS (SELECT 1 AS id) SELECT * FROM c AS s) AS s"
    assert merge.source_alias == "s"


def test_two_withs_of_one_name_are_refused() -> None:
    with pytest.raises(UnsupportedStatement, match="does not run") as refused:
        parse_one("WITH c AS (SELECT 1) DELETE FROM t WHERE id IN (WITH C AS (SELECT 2) SELECT * FROM c)")
    assert "rename" in refused.value.help


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELECT a FROM t WHERE", 1, 17),
        ("SELECT 1;\n  DELETE FROM t PARTITION(day=1)", 2, 30),
        ("SELECT * FROM t nonsense everywhere", 1, 26),
    ],
)
def test_a_syntax_error_points_where_the_token_begins(text: str, line: int, column: int) -> None:
    with pytest.raises(SqlSyntaxError) as wrong:
        parse(text)
    assert wrong.value.where is not None
    assert (wrong.value.where.line, wrong.value.where.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "told", "help"),
    [
        ("SELEC * FROM t", "no statement begins with 'SELEC'", "did you mean SELECT?"),
        ("SELECT 3 * FROM t", "something is missing near 'FROM'", ""),
        ("DESC t t t", "Invalid expression / Unexpected token near 't'", ""),
        ("SELECT * FROM", "Expected table name but got the end near 'FROM'", ""),
        ("SELECT a FROM t JOIN 5", "Expected table name but got '5' near '5'", ""),
    ],
)
def test_a_syntax_error_speaks_of_the_text_alone(text: str, told: str, help: str) -> None:
    with pytest.raises(SqlSyntaxError) as wrong:
        parse(text)
    assert wrong.value.what == told
    assert wrong.value.help == (help or SqlSyntaxError.default_help)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("CREATE TABLE t (x INT, y TIME(6))", 31),
        ("SELECT CAST(x AS TIME) FROM t", 13),
        ("SELECT CAST(x AS ARRAY<TIME>) FROM t", 13),
        ("SELECT TIME '10:00:00' FROM t", 13),
        ("CREATE MATERIALIZED VIEW v AS SELECT CAST(x AS TIME) AS y FROM t", 43),
    ],
)
def test_a_type_that_would_become_another_is_refused(text: str, column: int) -> None:
    with pytest.raises(UnsupportedStatement, match="TIME") as refused:
        parse(text)
    assert refused.value.where is not None
    assert refused.value.where.column == column


def test_other_types_stay_what_they_are() -> None:
    parse("SELECT CAST(a AS INTERVAL HOUR TO SECOND), CAST(b AS STRUCT<c: MAP<STRING, DECIMAL(5, 2)>>), d::REAL")
    parse("CREATE TABLE t (a BYTE, b LONG, c TIMESTAMP_NTZ, d TIMESTAMP_LTZ, e VARIANT, f INTERVAL YEAR, g CHAR(3))")


@pytest.mark.parametrize("rest", ["b INT PRIMARY KEY", "b INT, PRIMARY KEY (b)", "b INT, PRIMARY KEY (a, b)"])
def test_a_table_has_one_key(rest: str) -> None:
    with pytest.raises(BadDefinition, match="one PRIMARY KEY"):
        parse_one(f"CREATE TABLE t (a INT PRIMARY KEY, {rest})")


@pytest.mark.parametrize("text", ["UPDATE t", "UPDATE t SET", "CREATE TABLE z (a DECIMAL(12,``))", "SELECT '\ud800'"])
def test_half_a_statement_is_a_syntax_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse(text)
