"""Tables of a source as an engine knows them, for the catalog; and as the warehouse stores them."""

from __future__ import annotations

from matview.algebra.schema import Column, Schema
from matview.catalog.source_records import SourceTableRecord, StoredColumn
from matview.sources.engine import SourceTable


def recorded(table: SourceTable, name: str, replicate: bool = True) -> SourceTableRecord:
    """For the catalog; `name` is the table's in the warehouse."""
    columns = tuple(StoredColumn(c.name, c.source_type, c.type, c.nullable) for c in table.columns)
    return SourceTableRecord(table.name, name, columns, table.key, table.identity, replicate=replicate)


def schema_of(record: SourceTableRecord) -> Schema:
    """The source's key is the key, if it takes no nulls and can be one; of other columns nothing is relied upon."""
    kinds = {column.name: column for column in record.columns}
    can_be = all(not kinds[name].nullable and "<" not in kinds[name].type for name in record.key)
    key = record.key if can_be else ()
    return Schema(tuple(Column(c.name, c.type, c.name not in key) for c in record.columns), key)
