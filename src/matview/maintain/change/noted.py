"""The changes of a table that stays at its source: written down for the views that read it, and nothing else of it.

They become tuples of the table's log, as any other table's: an insert for a row that came, a delete for one that went.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from matview.algebra.nodes import WEIGHT
from matview.errors import ImpossibleOperation
from matview.maintain.change.working import Counts, Working
from matview.storage.snapshot import Level
from matview.versions.layout import COUNT, RID, Layout
from matview.versions.tuples import Operation


def noted(working: Working, rows: pa.Table) -> Counts:
    """Signed rows of all columns, as they were captured; where no view reads the table, nothing is written."""
    net = _net(working, rows) if working.logged else rows.slice(0, 0)
    if not net.num_rows:
        return Counts()
    tuples = _tuples(working.table.layout, net, working.next_rid, working.vn)
    working.staged += working.table.write(working.new_directory(), Level.OVERLAY, tuples)
    working.next_rid += tuples.num_rows
    comes = pc.sum(pc.if_else(pc.greater(net[WEIGHT], 0), net[WEIGHT], 0)).as_py()
    counts = Counts(inserted=comes, deleted=comes - pc.sum(net[WEIGHT]).as_py())
    working.counts += counts
    return counts


def _net(working: Working, rows: pa.Table) -> pa.Table:
    """At most one entry per distinct row; arrays cannot be compared here, and their rows stay as they came."""
    names = list(working.table.schema.names)
    if any(pa.types.is_nested(rows.schema.field(name).type) for name in names):
        return rows
    summed = rows.group_by(names).aggregate([(WEIGHT, "sum")])
    net = summed.rename_columns([*names, WEIGHT] if summed.column_names[0] in names else [WEIGHT, *names])
    net = net.filter(pc.not_equal(net[WEIGHT], 0))
    if working.table.schema.key and net.num_rows and pc.max(pc.abs(net[WEIGHT])).as_py() > 1:
        raise ImpossibleOperation(f"{working.table.name}: a row with a key came, or went, more than once")
    return net


def _tuples(layout: Layout, net: pa.Table, first: int, version: int) -> pa.Table:
    """What a tuple was before is in its previous values; the columns that are null in all of them are left out."""
    weight, count = net[WEIGHT], net.num_rows
    comes = pc.greater(weight, 0)
    current = {name: net[name] for name in layout.schema.names}
    if layout.schema.is_bag:
        current = {COUNT: pc.abs(weight), **current}
    operation = pc.if_else(comes, int(Operation.INSERT), int(Operation.DELETE))
    columns = {
        RID: pa.array(range(first, first + count), pa.int64()),
        **current,
        layout.vn(1): pa.repeat(pa.scalar(version, pa.int64()), count),
        layout.op(1): operation.cast(pa.int8()),
        **{layout.pre(1, name): _unless(comes, current[name]) for name in layout.updatable},
    }
    return pa.table(columns)


def _unless(condition: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Null where the condition holds."""
    return pc.if_else(condition, pa.scalar(None, values.type), values)
