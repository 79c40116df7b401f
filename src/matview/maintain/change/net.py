"""Signed rows as at most one entry per distinct row, on the driver."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from matview.algebra.nodes import WEIGHT
from matview.maintain.change.given import Given
from matview.storage.engine import Engine


def net_of_few(engine: Engine, rows: Given, once: Sequence[str] = ()) -> Given | None:
    """The weights of equal rows are added up, and so are the columns of `once`, which are then left out.

    None if the rows are not few, if Arrow does not tell them apart as Spark does, if one of `once` exceeds 1, or if
    weights may add up to more than there are numbers, of which Arrow says nothing.
    """
    if rows.few is None or any(pa.types.is_floating(kind) for kind in rows.few.schema.types):
        return None
    if sum(abs(weight or 0) for weight in rows.few[WEIGHT].to_pylist()) >= 1 << 63:
        return None
    kept = [i for i, name in enumerate(rows.few.column_names) if name not in (WEIGHT, *once)]
    numbered = pa.table(
        {f"c{i}": rows.few.column(i) for i in kept} | {name: rows.few[name] for name in (WEIGHT, *once)}
    )
    keys = [f"c{i}" for i in kept]
    summed = numbered.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in (WEIGHT, *once)])
    if any(pc.any(pc.greater(summed[f"{name}_sum"], 1)).as_py() for name in once):
        return None
    net = summed.filter(pc.not_equal(summed[f"{WEIGHT}_sum"], 0)).select([*keys, f"{WEIGHT}_sum"])
    names = [rows.few.column_names[i] for i in kept]
    schema = type(rows.schema)([rows.schema[i] for i in kept] + [rows.schema[rows.place(WEIGHT)]])
    return Given.local(engine, net.rename_columns([*names, WEIGHT]), schema)
