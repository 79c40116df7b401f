"""Per key, how many rows of a net change come and how many go, and the values of one of each, `__new_i` and `__old_i`,
in structs that are null where there is none. Spark does it for many rows, the driver for few: the outcome is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from matview.algebra.nodes import WEIGHT
from matview.maintain.change.given import Given
from matview.storage.engine import Engine
from matview.storage.few import hashable, structs
from matview.versions.layout import Layout
from matview.versions.text import quoted

ADDS, DELS = "__adds", "__dels"


def pairs(net: DataFrame, layout: Layout, *sums: Column) -> DataFrame:
    """`sums` are kept per key as well."""
    comes, goes = F.col(WEIGHT) > 0, F.col(WEIGHT) < 0
    weights = [
        F.sum(F.when(comes, F.col(WEIGHT)).otherwise(0)).alias(ADDS),
        F.sum(F.when(goes, -F.col(WEIGHT)).otherwise(0)).alias(DELS),
    ]
    boxes = [F.struct(_col(c).alias("v")) for c in layout.updatable]
    new = [F.first(F.when(comes, box), ignorenulls=True).alias(f"__new_{i}") for i, box in enumerate(boxes)]
    old = [F.first(F.when(goes, box), ignorenulls=True).alias(f"__old_{i}") for i, box in enumerate(boxes)]
    return net.groupBy(*map(_col, layout.schema.key)).agg(*weights, *sums, *new, *old)


@dataclass
class _Pair:
    """The rows of one key, by their places."""

    first: int
    adds: int = 0
    dels: int = 0
    new: int | None = None
    old: int | None = None

    def take(self, place: int, weight: int) -> None:
        if weight > 0:
            self.adds += weight
            self.new = place if self.new is None else self.new
        else:
            self.dels -= weight
            self.old = place if self.old is None else self.old


def pairs_of_few(engine: Engine, net: pa.Table, schema: StructType, layout: Layout) -> Given:
    """The same on the driver, for rows of the table's own columns, in that schema, and their weight."""
    key, updatable = layout.schema.key, layout.updatable
    found: dict[tuple[object, ...], _Pair] = {}
    keys = zip(*(hashable(net[c]) for c in key), strict=True)
    for place, (values, weight) in enumerate(zip(keys, net[WEIGHT].to_pylist(), strict=True)):
        if weight:
            found.setdefault(values, _Pair(place)).take(place, weight)
    made = list(found.values())
    firsts = net.take(pa.array([pair.first for pair in made], pa.int64()))
    columns: dict[str, pa.Array | pa.ChunkedArray] = {c: firsts[c] for c in key}
    columns |= {ADDS: pa.array([p.adds for p in made], pa.int64()), DELS: pa.array([p.dels for p in made], pa.int64())}
    fields = [StructField(c, schema[c].dataType) for c in key] + [StructField(n, LongType()) for n in (ADDS, DELS)]
    for side, places in (("new", [p.new for p in made]), ("old", [p.old for p in made])):
        taken = net.take(pa.array(places, pa.int64()))
        for i, c in enumerate(updatable):
            columns[f"__{side}_{i}"] = structs(taken.select([c]).rename_columns(["v"]), [p is None for p in places])
            fields.append(StructField(f"__{side}_{i}", StructType([StructField("v", schema[c].dataType)])))
    return Given.local(engine, pa.table(columns), StructType(fields))


def _col(name: str) -> Column:
    return F.col(quoted(name))
