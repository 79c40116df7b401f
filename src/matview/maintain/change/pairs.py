"""Per key, how many rows of a net change come and how many go, and the values of one of each, `__new_i` and `__old_i`,
in structs that are null where there is none. Spark does it for many rows, the driver for few: the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from matview.algebra.nodes import WEIGHT
from matview.local.batch import one_array
from matview.local.matching import alike
from matview.maintain.change.given import Given
from matview.storage.engine import Engine
from matview.storage.few import structs
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


def pairs_of_few(engine: Engine, net: pa.Table, schema: StructType, layout: Layout) -> Given:
    """The same on the driver, for rows of the table's own columns, in that schema, and their weight."""
    key, updatable = layout.schema.key, layout.updatable
    made = _places(net, key)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {c: net[c].take(made["first"]) for c in key}
    columns |= {ADDS: made[ADDS], DELS: made[DELS]}
    fields = [StructField(c, schema[c].dataType) for c in key] + [StructField(n, LongType()) for n in (ADDS, DELS)]
    for side in ("new", "old"):
        places = made[side]
        absent = places.is_null().to_pylist()
        for i, c in enumerate(updatable):
            columns[f"__{side}_{i}"] = structs(pa.table({"v": net[c].take(places)}), absent)
            fields.append(StructField(f"__{side}_{i}", StructType([StructField("v", schema[c].dataType)])))
    return Given.local(engine, pa.table(columns), StructType(fields))


def _places(net: pa.Table, key: Sequence[str]) -> pa.Table:
    """By key: how many rows come and how many go, and where the first of them, of those that come and of those that go
    are; null where there is none."""
    weight, place = one_array(net[WEIGHT]), pa.arange(0, net.num_rows)
    comes, goes = pc.greater(weight, 0), pc.less(weight, 0)
    told = pa.table(
        {f"k{i}": alike(one_array(net[c])) for i, c in enumerate(key)}
        | {ADDS: pc.if_else(comes, weight, 0), DELS: pc.if_else(goes, pc.negate(weight), 0)}
        | {"first": place, "new": pc.if_else(comes, place, None), "old": pc.if_else(goes, place, None)}
    ).filter(pc.not_equal(weight, 0))
    sums, firsts = [(name, "sum") for name in (ADDS, DELS)], [(name, "min") for name in ("first", "new", "old")]
    found = told.group_by([f"k{i}" for i in range(len(key))], use_threads=False).aggregate([*sums, *firsts])
    return pa.table({name: found[f"{name}_{how}"] for name, how in (*sums, *firsts)})


def _col(name: str) -> Column:
    return F.col(quoted(name))
