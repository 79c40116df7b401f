"""What is written is what is run: the way from Spark SQL to a tree and back changes no function."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
from pyspark.errors import PySparkException
from sqlglot.parsers.spark import SparkParser
from tests.algebra.fuzzing import EXAMPLES

from matview.errors import MatviewError, UnsupportedStatement
from matview.sql.lower.functions import depends_on_more, is_aggregate
from matview.sql.parse import parse_one
from matview.sql.statements import CreateTable, Insert, Query, Update
from matview.versions.text import foreign_text, spark_text

AS_WRITTEN = """
SELECT INSTR(a, 'b', 1, 2)
SELECT INSTR(a, 'b', -1)
SELECT LISTAGG(a)
SELECT LISTAGG(DISTINCT a)
SELECT LISTAGG(a, '; ') WITHIN GROUP (ORDER BY b DESC)
SELECT MAX_BY(a, b, 2)
SELECT MIN_BY(a, b, 2)
SELECT MAX_BY(a, b)
SELECT PARSE_JSON(a)
SELECT PERCENTILE(a, 0.5)
SELECT PERCENTILE(a, 0.5, b)
SELECT PERCENTILE(DISTINCT a, 0.5)
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY a)
SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY a DESC)
SELECT TO_CHAR(a, '99G999')
SELECT TO_TIMESTAMP(a)
SELECT TO_TIMESTAMP(a, 'yyyy')
SELECT TIMESTAMP(a)
SELECT FROM_UTC_TIMESTAMP(a, 'CET')
SELECT UNIX_DATE(a)
SELECT LOG10(a), LOG(a), LOG(2, a)
SELECT DATE_TRUNC(a, b), DATE_TRUNC('month', b), TRUNC(a, b), TRUNC(a, 'mm')
SELECT TO_DATE(a, 'yyyy-MM-dd'), DATE_FORMAT(a, 'y'), DATE_FORMAT(a, 'YY')
SELECT NAMED_STRUCT(CONCAT('a', 'b'), 1), NAMED_STRUCT('a', 1)
SELECT REGEXP_LIKE(a, 'b', 'i'), MAX(1, 2), HEX(a, b)
SELECT GET_JSON_OBJECT(a, '$..x'), GET_JSON_OBJECT(a, 'x')
SELECT NVL(a, b), CHAR_LENGTH(a), ARRAY_AGG(a), VAR_SAMP(a), INSTR(a, 'b'), LOCATE('b', a), SUBSTR(a, 2)
SELECT FIRST(a) IGNORE NULLS, DATEADD(DAY, 3, a), TIMESTAMPDIFF(MONTH, a, b)
SELECT TRANSFORM(a, x -> x + 1), TRANSFORM(a, (x, i) -> x + i)
SELECT 10L, -128Y, -32768S, -9223372036854775808L, 1.50BD, -1E3BD, 1.5D, 1.5F
SELECT DATE '2020-01-01', TIMESTAMP '2020-01-01 10:00:00', TIMESTAMP_NTZ '2020-01-01 10:00:00'
SELECT a IS NULL, a IS NOT NULL, NOT (a IS NULL)
SELECT CAST('2020-01-01' AS DATE), CAST(10 AS BIGINT)
SELECT 1 | SHIFTRIGHT(8, 1), SHIFTLEFT(1 + 2, 3) & 4
SELECT ~~a, 1 | 2 & 3 ^ 4, a || b + c
SELECT * FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1
SELECT INTERVAL '1' DAY
SELECT INTERVAL '1' DAY '2' HOURS
SELECT a - INTERVAL '1' DAY '1' HOUR
SELECT 2 * INTERVAL '1' DAY '2' HOURS '3' MINUTES
SELECT -INTERVAL '1' DAY '1' HOUR
SELECT INTERVAL '1' DAY '-2' HOURS
SELECT INTERVAL '1' DAY - 2 * a
SELECT INTERVAL '1' DAY + 2 * INTERVAL '1' HOUR
SELECT INTERVAL '1-2' YEAR TO MONTH
SELECT interval + 1
"""


@pytest.mark.parametrize("text", AS_WRITTEN.strip().splitlines())
def test_comes_out_as_it_went_in(text: str) -> None:
    assert written(text) == text


LITERALS = {
    "'it''s'": r"'it\'s'",
    '"a""b"': "'a\"b'",
    "\"a''b\"": r"'a\'\'b'",
    "''''": r"'\''",
    "''": "''",
    "'x' 'y'": "'xy'",
    "'x''' /* and */ \"y\"": r"'x\'y'",
    "r'it''s'": "'its'",
    r"r'a\' 'b'": r"'a\\b'",
    r"'a' r'\n' '\n'": r"'a\\n\n'",
    r"'\\''a'": r"'\\\'a'",
    r"'\%\_'": r"'\\%\\_'",
}


@pytest.mark.parametrize("text", LITERALS)
def test_a_doubled_quote_is_a_quote_and_literals_in_a_row_are_one(text: str) -> None:
    assert written(f"SELECT {text}").split(" /*")[0] == f"SELECT {LITERALS[text]}"


def test_every_literal_is_what_spark_reads(spark: Any) -> None:
    texts = [text for pair in LITERALS.items() for text in pair]
    row = spark.sql(f"SELECT {', '.join(f'{text} AS c{i}' for i, text in enumerate(texts))}").collect()[0]
    assert row[::2] == row[1::2]


def test_other_engines_double_quotes() -> None:
    statement = parse_one(r"SELECT 'it''s', r'a\'")
    assert isinstance(statement, Query)
    assert {foreign_text(statement.query, to) for to in ("duckdb", "postgres")} == {r"SELECT 'it''s', 'a\'"}


def test_quotes_in_every_statement() -> None:
    created = parse_one("CREATE TABLE t (a STRING COMMENT 'one''s') COMMENT 'it''s' TBLPROPERTIES ('k''' = \"v\"\"\")")
    assert isinstance(created, CreateTable)
    assert created.properties == {"comment": "it's", "k'": 'v"', "comment.a": "one's"}
    updated = parse_one("UPDATE t SET a = 'it''s' WHERE a = 'x' 'y'")
    assert isinstance(updated, Update)
    assert updated.where is not None
    assert (updated.assignments["a"].name, updated.where.expression.name) == ("it's", "xy")


DEEP = {
    "parentheses": "(" * 300 + "1" + ")" * 300,
    "functions": "ABS(" * 300 + "1" + ")" * 300,
    "cases": "CASE WHEN a THEN " * 300 + "1" + " END" * 300,
    "subqueries": "(SELECT " * 300 + "1" + ")" * 300,
    "operators": "1" + " + 1 - 1" * 3000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedStatement, match="nested too deeply") as refused:
        written(f"SELECT {text}")
    assert "WITH" in str(refused.value)


TABLES = {
    "TABLE t": "SELECT * FROM t",
    "TABLE t ORDER BY a LIMIT 2": "SELECT * FROM t ORDER BY a LIMIT 2",
    "SELECT * FROM (TABLE t) AS x": "SELECT * FROM (SELECT * FROM t) AS x",
    "TABLE t UNION ALL TABLE u": "SELECT * FROM t UNION ALL SELECT * FROM u",
    "WITH c AS (TABLE t) TABLE c": "WITH c AS (SELECT * FROM t) SELECT * FROM c",
    "SELECT a IN (TABLE t)": "SELECT a IN (SELECT * FROM t)",
    "SELECT table FROM t": "SELECT table FROM t",
}


@pytest.mark.parametrize("text", TABLES)
def test_a_table_is_a_query(text: str) -> None:
    assert written(text) == TABLES[text]


def test_a_table_can_be_inserted() -> None:
    statement = parse_one("INSERT INTO t TABLE u")
    assert isinstance(statement, Insert)
    assert spark_text(statement.source) == "SELECT * FROM u"


def written(text: str) -> str:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    return spark_text(statement.query)


# calls of functions ---------------------------------------------------------------------------------------------------

SAYS_THE_SAME = (
    *("and", "any", "cast", "extract", "not", "or", "overlay", "struct", "trim", "try_cast"),
    *("date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"),
)
"""Written otherwise: those with a syntax of their own, fields with their names, and units, which are no columns."""


def calls(name: str) -> list[str]:
    """A function of none to four columns, and of as many literals, some of which sqlglot takes for something."""
    columns, literals = ("c", "d", "e", "f"), ("'y'", "'M'", "'d'", "1")
    given = [some[:count] for some in (columns, literals) for count in range(5)]
    return [f"{name.upper()}({', '.join(arguments)})" for arguments in given]


def changed(name: str) -> list[tuple[str, str]]:
    """The calls that become others; a call that is refused becomes none."""
    together = f"SELECT {', '.join(calls(name))}"
    if is_as_written(together):
        return []
    found = [(call, rewritten(f"SELECT {call}")) for call in calls(name)]
    return [(call, became) for call, became in found if became is not None]


def test_every_function_that_sqlglot_knows_is_written_as_it_was_called() -> None:
    names = [name for name in SparkParser.FUNCTIONS if name.lower() not in (*SAYS_THE_SAME, "apply")]
    assert [found for name in names for found in changed(name)] == []


def test_every_function_of_spark_is_written_as_it_was_called(spark: Any) -> None:
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    plain = [name for name in names if name.isidentifier() and name not in (*SAYS_THE_SAME, "case", "in", "when")]
    assert len(plain) > 500
    assert [found for name in plain for found in changed(name)] == []


def test_a_call_without_a_class_is_known_by_its_name() -> None:
    named = [parse_one(f"SELECT {call}") for call in ("uuid(1)", "rand(1, 2)", "unix_timestamp()", "curdate()")]
    assert all(isinstance(found, Query) and depends_on_more(found.query.selects[0]) for found in named)
    collected = parse_one("SELECT collect_list(a, b), max(a, b), count_if(a)")
    assert isinstance(collected, Query)
    assert all(map(is_aggregate, collected.query.selects))


def test_other_engines_have_other_names() -> None:
    statement = parse_one("SELECT to_date(a, 'yyyy-MM-dd'), mod(a, 2)")
    assert isinstance(statement, Query)
    text = foreign_text(statement.query, "duckdb")
    assert "TO_DATE" not in text
    assert "a % 2" in text


# random expressions ---------------------------------------------------------------------------------------------------

_NUMBERS = ("1", "7", "-3", "2L", "-5L", "LENGTH('it''s')", "INSTR('abc', 'c')", "DAY(DATE '2020-02-03')")
_WORDS = ("'it''s'", '"a""b"', "'x' 'y'", r"r'\%'", "''", "STRING(1.5BD)", "DATE_FORMAT(DATE '2020-01-01', 'y')")
_OPERATORS = (*"+-*&|^", "<<", ">>", ">>>")
_COMPARED = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM")


def number(rng: Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(_NUMBERS)
    left, right = number(rng, depth - 1), number(rng, rng.randrange(depth))
    made = f"{left} {rng.choice(_OPERATORS)} {right}"
    shown = [made, made, f"({made})", f"- ({made})", f"~{left}", f"IF({truth(rng, depth - 1)}, {left}, {right})"]
    return rng.choice(shown)


def word(rng: Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(_WORDS)
    left, right = word(rng, depth - 1), rng.choice([word, number])(rng, 0)
    return rng.choice([f"{left} || {right}", f"{left} || {right}", f"UPPER({left})", f"NVL({left}, 'z')"])


def truth(rng: Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(["TRUE", "FALSE", "CAST(NULL AS BOOLEAN)", "1 IS NOT NULL", "NOT 'a' RLIKE 'b'"])
    a, b, c = (number(rng, rng.randrange(depth)) for _ in range(3))
    left, right = truth(rng, depth - 1), truth(rng, rng.randrange(depth))
    texts = [f"{word(rng, 1)} {how} {word(rng, 1)}" for how in ("=", "LIKE", "NOT LIKE", "ILIKE")]
    logic = [f"{left} AND {right}", f"{left} OR {right}", f"NOT {left}", f"({left}) IS NOT TRUE"]
    compared = [f"{a} {rng.choice(_COMPARED)} {b}", f"{a} BETWEEN {b} AND {c}", f"{a} NOT IN ({b}, {c})"]
    return rng.choice([*texts, *logic, *logic, *compared, *compared])


def test_random_expressions_mean_the_same(spark: Any) -> None:
    rng = Random(EXAMPLES)
    texts = [kind(rng, rng.randrange(1, 5)) for _ in range(100) for kind in (number, word, truth)]
    pairs = [(text, written(f"SELECT {text}").removeprefix("SELECT ")) for text in texts]
    items = [f"{text} AS c{i}_{side}" for i, pair in enumerate(pairs) for side, text in enumerate(pair)]
    spark.conf.set("spark.sql.ansi.enabled", "false")  # an overflow is no error, so that one job does for all
    try:
        row = spark.sql(f"SELECT {', '.join(items)}").collect()[0]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    assert [pair for i, pair in enumerate(pairs) if row[2 * i] != row[2 * i + 1]] == []


# the examples that Spark gives for its own functions ------------------------------------------------------------------

_OTHER_EACH_TIME = re.compile(
    r"\b(rand|uuid|shuffle|uniform|now|current|local|curdate|aes_|unix_timestamp\(\)|.*partition)"
)


def test_every_example_of_spark_means_the_same(spark: Any) -> None:
    changed = [(text, became) for text in examples(spark) if (became := rewritten(text)) is not None]
    assert len(changed) > 50
    found = [(text, became, outcome(spark, text)) for text, became in changed]
    wrong = [(text, became) for text, became, right in found if right and outcome(spark, became) not in (right, None)]
    assert wrong == []


def examples(spark: Any) -> list[str]:
    """Their own words, one line each."""
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    told = [spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect() for name in names if name.isidentifier()]
    text = "\n".join(row[0] for rows in told for row in rows)
    return [found for found in re.findall(r"> (SELECT .*);", text) if not _OTHER_EACH_TIME.search(found)]


def rewritten(text: str) -> str | None:
    """What it becomes; None if it is refused, or the same but for spaces and case."""
    try:
        became = written(text)
    except MatviewError:
        return None
    return None if _plain(became) == _plain(text) else became


def is_as_written(text: str) -> bool:
    try:
        return _plain(written(text)) == _plain(text)
    except MatviewError:
        return False


def _plain(text: str) -> str:
    return re.sub(r"\s", "", text.lower().replace('"', "'"))


def outcome(spark: Any, text: str) -> object:
    """Types and rows; None where Spark refuses: an error is no wrong answer."""
    try:
        frame = spark.sql(text)
        return [field.dataType for field in frame.schema], repr([tuple(row) for row in frame.collect()])
    except PySparkException:
        return None
