"""Sums and averages from states are Spark's own, to the last digit, for every type that has a state."""

from __future__ import annotations

from decimal import Context, Decimal
from random import Random
from typing import Any

import pytest

from matview.algebra.nodes import Aggregate, Node, Project, Scan
from matview.algebra.schema import Field
from matview.plan.summary import Summary, summary_of
from matview.sql.parse import parse_one
from matview.sql.render import query
from matview.versions.text import spark_text

WHOLE = 60
"""Digits enough for every decimal."""


def summary(kind: str, result: str) -> Summary:
    """avg(x) by g."""
    scan = Scan("numbers", ("g", "x"), (Field("g", "int"), Field("x", kind)))
    call = parse_one("SELECT avg(x) FROM numbers").query.expressions[0]
    aggregate = Aggregate(scan, ("g",), (("a", call),))

    def typing(node: Node) -> tuple[Field, ...]:
        """Of the argument, and of the aggregate over it."""
        types = {"g": "int", "a": kind if isinstance(node, Project) else result}
        return tuple(Field(f.name, types[f.name], f.nullable) for f in node.fields)

    outputs = tuple((name, parse_one(f"SELECT {name} FROM n").query.expressions[0]) for name in ("g", "a"))
    return summary_of(aggregate, outputs, typing)


def rows(random: Random, precision: int, scale: int) -> list[tuple[int, Decimal]]:
    """Few and many per group, small and as large as can be."""
    made = []
    for group in range(60):
        most = random.choice([min(10, 10**precision - 1), 10**precision - 1])
        numbers = [random.randint(-most, most) for _ in range(random.choice([1, 2, 3, 7, 11, 13, 29, 41]))]
        made += [(group, Decimal(number).scaleb(-scale, Context(prec=WHOLE))) for number in numbers]
    return made


@pytest.mark.parametrize("seed", range(6))
def test_an_average_has_sparks_digits(seed: int, spark: Any) -> None:
    random = Random(seed)
    precision = random.choice([random.randint(1, 24), random.randint(17, 24)])
    scale = random.choice([0, min(1, precision), random.randint(0, precision)])
    kind, result = f"decimal({precision},{scale})", f"decimal({min(precision + 4, 38)},{scale + 4})"
    made = summary(kind, result)
    assert made.method == "additive"
    spark.createDataFrame(rows(random, precision, scale), f"g int, x {kind}").createOrReplaceTempView("numbers")
    found = spark.sql(spark_text(query(made.computed(made.aggregate.input))))
    wanted = spark.sql("SELECT g, avg(x) AS a FROM numbers GROUP BY g")
    assert {r["g"]: r["a"] for r in found.collect()} == {r["g"]: r["a"] for r in wanted.collect()}, kind


@pytest.mark.parametrize("kind", ["decimal(25,5)", "decimal(38,0)", "decimal(28,10)"])
def test_no_state_has_the_digits_of_an_average_of_long_decimals(kind: str) -> None:
    assert summary(kind, "decimal(38,9)").method == "affected"


def test_an_average_of_bigint_adds_what_a_sum_cannot(spark: Any) -> None:
    made = summary("bigint", "double")
    spark.sql("SELECT 1 AS g, 9223372036854775807 AS x FROM range(3)").createOrReplaceTempView("numbers")
    (found,) = spark.sql(spark_text(query(made.computed(made.aggregate.input)))).collect()
    assert found["a"] == 9223372036854775807.0
