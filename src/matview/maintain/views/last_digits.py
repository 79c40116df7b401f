"""Rows that differ in nothing but the last digits of what was added up in floating point are the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from matview.versions.text import quoted

TOLERANCE = {"double": 1e-11, "float": 1e-6}
"""Of the larger of two values, by their type."""


def but_for_last_digits(rows: DataFrame, weight: str, rough: Mapping[str, str]) -> DataFrame:
    """A signed bag without the pairs of a row that came and one that went, alike in all but the last digits of the
    rough columns; these are given with their types."""
    exact = [F.col(quoted(c)) for c in rows.columns if c not in rough and c != weight]
    if not rough or any(field.dataType.typeName() == "map" for field in rows.schema.fields):
        return rows
    size, sign = F.abs(F.col(quoted(weight))), F.signum(F.col(quoted(weight)))
    in_order = Window.partitionBy(*exact, size, sign).orderBy(*(F.col(quoted(c)) for c in rough))
    beside = Window.partitionBy(*exact, size, F.col("__place"))
    alike = reduce(Column.__and__, (_alike(F.col(quoted(c)), beside, TOLERANCE[kind]) for c, kind in rough.items()))
    placed = rows.withColumn("__place", F.row_number().over(in_order))
    paired = placed.withColumn("__paired", (F.count(F.lit(1)).over(beside) == 2) & alike)
    return paired.where(~F.coalesce(F.col("__paired"), F.lit(False))).select(*(F.col(quoted(c)) for c in rows.columns))


def _alike(value: Column, beside: WindowSpec, tolerance: float) -> Column:
    """Two values, or two nulls; of those that are no numbers only the same."""
    least, greatest = F.min(value).over(beside), F.max(value).over(beside)
    largest = F.greatest(F.abs(least), F.abs(greatest))
    near = (largest < float("inf")) & (greatest - least <= largest * tolerance)
    there = F.count(value).over(beside)
    return (there == 0) | ((there == 2) & ((least == greatest) | near))
