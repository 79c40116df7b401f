"""The extended relation as the paper prints it (Figures 4, 6 and 7)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from matview.storage.table import VersionedTable
from matview.versions.tuples import Operation


def extended_relation(table: VersionedTable, latest: DataFrame) -> DataFrame:
    """tuple_vn, operation, the columns, pre_*; with n > 2 versions the version columns carry their slot's number."""
    layout = table.layout
    single = layout.versions == 2
    columns: list[Column] = []
    for i in layout.slot_numbers:
        suffix = "" if single else f"_{i}"
        slot = [
            F.col(layout.vn(i)).alias(f"tuple_vn{suffix}"),
            _operation(layout.op(i)).alias(f"operation{suffix}"),
        ]
        pre = [_column(layout.pre(i, c)).alias(f"pre_{c.removeprefix('__')}{suffix}") for c in layout.updatable]
        user = [_column(c).alias(c.removeprefix("__")) for c in layout.current] if i == 1 else []
        columns += [*slot, *user, *pre]
    return latest.select(*columns)


def _operation(name: str) -> Column:
    code = F.col(name)
    named = F.when(code == int(Operation.INSERT), "insert").when(code == int(Operation.UPDATE), "update")
    return named.when(code == int(Operation.DELETE), "delete")


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
