"""Staged rows: the stored columns of each tuple that a statement touches, and beside them

__level    base (a new tuple), overlay (a new state of a stored one), restore (back to what was stored before)
__act      what is reported: 1 insert, 2 update, 3 delete, `__times` times
__fault    null, or why the row cannot be, as `faults.first_fault` tells it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from matview.storage.few import arrow_schema
from matview.storage.snapshot import Level
from matview.storage.table import VersionedTable
from matview.versions.layout import LEVEL

ACT, TIMES, FAULT = "__act", "__times", "__fault"
BESIDE = (LEVEL, ACT, TIMES, FAULT)
RESTORE = "restore"
STAGED_TYPES = {LEVEL: pa.string(), ACT: pa.int32(), TIMES: pa.int64(), FAULT: pa.string()}


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows to be staged, which levels they can have, and at most how many of them belong to stored tuples."""

    made: Callable[[], DataFrame]
    levels: tuple[Level, ...]
    most_touched: int
    may_repeat: bool = False
    """Two of the rows may be for one tuple, or new ones with one key: to be looked for when they are written."""
    few: bool = False
    """They are few, and can be on the driver."""
    here: pa.Table | None = None
    """They are on the driver, in the columns that the table stores and those beside them."""


def staged_schema(table: VersionedTable, columns: Iterable[str]) -> pa.Schema | None:
    """Of staged rows on the driver; None if some stored column is of a type that does not travel."""
    stored = arrow_schema(table.engine.struct(table.layout.columns))
    if stored is None:
        return None
    types = {field.name: field.type for field in stored} | STAGED_TYPES
    return pa.schema([(name, types[name]) for name in columns])
