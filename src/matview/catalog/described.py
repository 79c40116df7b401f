"""Tables of a source as the catalog keeps them, for the engine that is asked about them.

Imported only where sources are asked: engines bring their drivers along.
"""

from __future__ import annotations

from collections.abc import Iterable

from matview.catalog.source_records import SourceTableRecord
from matview.sources.engine import SourceColumn, SourceTable


def described(record: SourceTableRecord) -> SourceTable:
    """The table as it was when it was last read whole."""
    columns = tuple(SourceColumn(c.name, c.source_type, c.type, c.nullable) for c in record.columns)
    return SourceTable(record.name, columns, record.key, record.identity)


def all_described(records: Iterable[SourceTableRecord]) -> list[SourceTable]:
    return [described(record) for record in records]
