"""What rounds keep in the warehouse's directory until they end: computed changes, and tables read whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from matview.catalog.source_records import RoundPart, SourceTableRecord
from matview.errors import StorageFailure
from matview.sources.engine import SourceTable
from matview.sources.types import change_schema
from matview.storage.files import Files

HOME = "_rounds"
OPTIONS = {"compression": "zstd", "coerce_timestamps": "us"}


def directory(number: int) -> str:
    return f"{HOME}/{number:010d}"


def write_changes(files: Files, place: str, changes: Mapping[str, pa.Table]) -> dict[str, str]:
    """Each table's changes into a file of their own; the paths by the tables' names."""
    paths = {}
    for number, (name, rows) in enumerate(sorted(changes.items())):
        paths[name] = f"{place}/changes-{number}.parquet"
        with files.output(paths[name]) as stream:
            pq.write_table(rows, stream, **OPTIONS)
    return paths


def read_changes(files: Files, part: RoundPart, tables: Mapping[str, SourceTable]) -> dict[str, pa.Table] | None:
    """What was written; None if it is not all there."""
    found = {}
    for name, path in part.files.items():
        schema = change_schema(tables[name])
        try:
            found[name] = files.read(path, schema.names).select(schema.names).cast(schema)
        except (StorageFailure, KeyError):
            return None
    return found


def forget(files: Files, places: Sequence[str]) -> None:
    for place in places:
        files.delete_dir(place)


def names_of(tables: Sequence[SourceTableRecord]) -> tuple[str, ...]:
    return tuple(table.name for table in tables)
