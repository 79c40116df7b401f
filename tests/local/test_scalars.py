"""What the driver computes is what Spark computes: the value and the type; where it would not, it says so."""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from tests.local.expressions import COLUMNS, relation, some
from tests.local.rows import batch_of

from matview.local.batch import Batch, one_array
from matview.local.kinds import NULL, UNKNOWN, NotLocal, kind_of, spark_of
from matview.local.scalars import Scalar, Scope, scalar

KINDS = [kind_of(text) for text in COLUMNS.values()]
ROW = [2, 10, 127, None, None, "a", True, dt.date(1970, 1, 2), 1.5, None]


def compiled(text: str) -> Scalar | None:
    try:
        return scalar(sqlglot.parse_one(text, dialect="spark"), Scope.of(list(COLUMNS), KINDS))
    except NotLocal:
        return None


def told(one: Scalar, batch: Batch) -> list[Any] | None:
    try:
        return [*map(shown, one.rows(batch).to_pylist())]
    except NotLocal:
        return None


def shown(value: Any) -> tuple[Any, Any]:
    """Numbers that are none are alike, and so are zeros; 1 is not 1.0."""
    return type(value), "NaN" if value != value else value


@pytest.mark.parametrize("seed", range(3))
def test_random_expressions_are_what_spark_computes(seed: int, spark: Any) -> None:
    given = spark.sql(relation())
    found = given.toArrow()
    batch = Batch.of([one_array(column) for column in found.columns], found.num_rows)
    rows = [batch.taken(pa.array([place])) for place in range(batch.size)]
    random = Random(seed)
    texts = [some(random) for _ in range(400)]
    tried = {text: one for text in texts if (one := compiled(text)) is not None and one.kind != UNKNOWN}
    here = {text: found for text, one in tried.items() if (found := told(one, batch)) is not None}
    assert len(here) > 100
    there = given.selectExpr(*(f"{text} AS e{n}" for n, text in enumerate(here)))
    table, types = there.toArrow(), [field.dataType.simpleString() for field in there.schema.fields]
    for number, (text, values) in enumerate(here.items()):
        assert values == [*map(shown, table.column(number).to_pylist())], text
        alone = [told(tried[text], row) for row in rows]
        assert values == [value for one in alone for value in one or ["for Spark"]], text
        if tried[text].kind != NULL:
            assert spark_of(tried[text].kind) == types[number], text


@pytest.mark.parametrize(
    "text", ["i + 2147483647", "t + t", "d / i", "s = 1", "x > 0", "CAST(d AS INT)", "rand()", "upper(s)", "y = s"]
)
def test_what_arrow_would_do_otherwise_is_left_to_spark(text: str) -> None:
    one = compiled(text)
    assert one is None or told(one, batch_of(KINDS, [ROW])) is None


def test_a_branch_for_spark_matters_only_to_rows_that_take_it() -> None:
    one = compiled("CASE WHEN i > 5 THEN upper(s) ELSE s END")
    assert one is not None
    assert one.rows(batch_of(KINDS, [ROW, ROW])).to_pylist() == ["a", "a"]
    for rows in ([[9, *ROW[1:]]], [ROW, [9, *ROW[1:]]]):
        with pytest.raises(NotLocal):
            one.of(batch_of(KINDS, rows))
