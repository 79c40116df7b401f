"""What Python computes is what Spark computes: the value and the type; where it would not, it says so."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import sqlglot
from tests.local.expressions import COLUMNS, relation, some

from matview.local.kinds import NULL, UNKNOWN, NotLocal, kind_of, normal
from matview.local.scalars import Row, Scalar, Scope, scalar
from matview.storage.values import rows_of, spark_of, values_of

KINDS = [kind_of(text) for text in COLUMNS.values()]


def compiled(text: str) -> Scalar | None:
    try:
        return scalar(sqlglot.parse_one(text, dialect="spark"), Scope.of(list(COLUMNS), KINDS))
    except NotLocal:
        return None


def told(one: Scalar, rows: list[Row]) -> list[Any] | None:
    try:
        return [one.of(row) for row in rows]
    except NotLocal:
        return None


def shown(value: Any) -> tuple[Any, Any]:
    """Numbers that are none are alike, and 1 is not 1.0."""
    return type(value), normal(value)


@pytest.mark.parametrize("seed", range(3))
def test_random_expressions_are_what_spark_computes(seed: int, spark: Any) -> None:
    given = spark.sql(relation())
    rows = rows_of(given.toArrow(), list(COLUMNS))
    random = Random(seed)
    texts = [some(random) for _ in range(400)]
    tried = {text: one for text in texts if (one := compiled(text)) is not None and one.kind != UNKNOWN}
    here = {text: found for text, one in tried.items() if (found := told(one, rows)) is not None}
    assert len(here) > 100
    there = given.selectExpr(*(f"{text} AS e{n}" for n, text in enumerate(here)))
    table, types = there.toArrow(), [field.dataType.simpleString() for field in there.schema.fields]
    for number, (text, found) in enumerate(here.items()):
        expected = values_of(table.column(number))
        assert list(map(shown, found)) == list(map(shown, expected)), text
        if tried[text].kind != NULL:
            assert spark_of(tried[text].kind) == types[number], text


@pytest.mark.parametrize(
    "text", ["i + 2147483647", "t + t", "d / i", "s = 1", "x > 0", "CAST(d AS INT)", "rand()", "upper(s)", "y = s"]
)
def test_what_python_would_do_otherwise_is_left_to_spark(text: str) -> None:
    one = compiled(text)
    row: Row = [2, 10, 127, None, None, b"a", True, 1, 1.5]
    assert one is None or told(one, [row]) is None


def test_a_branch_for_spark_matters_only_to_rows_that_take_it() -> None:
    one = compiled("CASE WHEN i > 5 THEN upper(s) ELSE s END")
    assert one is not None
    row: list[Any] = [2, 10, 1, None, None, b"a", True, 1, 1.5]
    assert one.of(row) == b"a"
    with pytest.raises(NotLocal):
        one.of([9, *row[1:]])
