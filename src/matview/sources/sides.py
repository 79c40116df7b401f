"""Delta rows by sides, as drivers give them, put together as signed changes: those that came, and those that went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from matview.sources.carried import Row
from matview.sources.engine import Captured, SourceTable, Taken
from matview.sources.types import change_schema

SIDES = ("added", "deleted")
WEIGHTS = {"added": 1, "deleted": -1}

Sides = Mapping[str, Sequence[Row]]
"""The rows of each side: the columns of the table in their order, and whatever an engine needs after them."""
Arrow = Callable[[SourceTable, Sequence[Row]], pa.RecordBatch]
"""The rows of a table as Arrow, each value in the type of its column; an error names the row."""


def captured(tables: Sequence[SourceTable], taken: Taken, rows: Mapping[str, Sides], arrow: Arrow) -> Captured:
    """What a set changed, for an engine that does not tell its transactions apart. To be made after the snapshot was
    given up: what takes time is done when nobody waits for it."""
    found = {table.name: signed(table, rows[table.name], arrow) for table in tables}
    changed = {name: change for name, change in found.items() if change.num_rows}
    total = sum(change.num_rows for change in changed.values())
    return Captured(taken, 1 if total else 0, total, changed)


def signed(table: SourceTable, sides: Sides, arrow: Arrow) -> pa.Table:
    schema, batches = change_schema(table), []
    for side, rows in sides.items():
        weight = pa.repeat(pa.scalar(WEIGHTS[side], pa.int64()), len(rows))
        batches.append(pa.record_batch([*arrow(table, rows).columns, weight], schema=schema))
    return pa.Table.from_batches(batches, schema)
