"""Statistics of a Parquet file from its footer, and their text in a Delta add action."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq

from matview.storage.files import Files
from matview.storage.snapshot import DataFile, Level


def data_file(files: Files, path: str, level: Level, size: int) -> DataFile:
    """A file as Spark wrote it, with what its footer says."""
    return described(path, level, size, files.parquet(path))


def described(path: str, level: Level, size: int, footer: pq.FileMetaData) -> DataFile:
    minimum, maximum = _bounds(footer)
    return DataFile(path, level, size, footer.num_rows, minimum, maximum)


def _bounds(footer: pq.FileMetaData) -> tuple[dict[str, object], dict[str, object]]:
    """Least and greatest value by top-level column; a column that lacks them in any row group is left out."""
    minimum: dict[str, object] = {}
    maximum: dict[str, object] = {}
    for index in range(footer.num_columns):
        leaf = footer.schema.column(index)
        if leaf.path != leaf.name:
            continue
        bounds = [group_bounds(footer.row_group(g).column(index)) for g in range(footer.num_row_groups)]
        known = [b for b in bounds if b is not None]
        if len(known) != len(bounds):
            continue
        values = [b for b in known if b]
        if values:
            minimum[leaf.name] = min(b[0] for b in values)
            maximum[leaf.name] = max(b[1] for b in values)
    return minimum, maximum


def group_bounds(column: pq.ColumnChunkMetaData) -> tuple[Any, Any] | tuple[()] | None:
    """(least, greatest); () where all is null; None where nothing is known."""
    stats = column.statistics
    if stats is None:
        return None
    if stats.null_count is not None and stats.null_count == column.num_values:
        return ()
    try:
        bounds = (stats.min, stats.max) if stats.has_min_max else (None, None)
    except (ValueError, OverflowError):  # a date that Python has none of, beyond the year 9999
        return None
    return bounds if all(map(_usable, bounds)) else None


def _usable(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int | str | Decimal | dt.date) and not isinstance(value, bool)


def delta_stats(file: DataFile) -> str:
    """The `stats` of a Delta add action; decimals are written digit by digit."""
    return (
        f'{{"numRecords":{file.rows},"minValues":{_object(file.minimum)},"maxValues":{_object(file.maximum)},'
        '"nullCount":{}}'
    )


def _object(values: Mapping[str, object]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{_text(value)}" for name, value in values.items()) + "}"


def _text(value: object) -> str:
    match value:
        case Decimal():
            return format(value, "f")
        case dt.datetime():
            zone = "Z" if value.tzinfo else ""
            naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return json.dumps(naive.isoformat(timespec="microseconds") + zone)
        case dt.date():
            return json.dumps(value.isoformat())
        case _:
            return json.dumps(value)
