"""When two values of a column are the same, in SQL: nulls are, and so are maps and variants that read alike."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from matview.versions.comparable import comparable_sql, is_itself
from matview.versions.layout import Layout
from matview.versions.text import quoted


def same_sql(one: str, other: str, layout: Layout, name: str) -> str:
    kind = layout.type_of(name)
    return f"{comparable_sql(one, kind)} <=> {comparable_sql(other, kind)}"


def comparable(layout: Layout, name: str) -> Column:
    """A column in a form that can be compared and joined with."""
    return F.expr(comparable_sql(quoted(name), layout.type_of(name)))


def all_of(conditions: Iterable[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)


def grouped(rows: DataFrame, layout: Layout, *sums: Column) -> DataFrame:
    """One row per distinct row of the table's columns, each as it came in one of them, with sums.

    To group by a floating value or by a map would change it: such are grouped by their form, and carried beside.
    """
    odd = {c: f"__form_{i}" for i, c in enumerate(layout.schema.names) if not is_itself(layout.type_of(c))}
    by = [comparable(layout, c).alias(odd[c]) if c in odd else F.col(quoted(c)) for c in layout.schema.names]
    carried = [F.first(F.col(quoted(c))).alias(c) for c in odd]
    return rows.groupBy(*by).agg(*sums, *carried).drop(*odd.values())
