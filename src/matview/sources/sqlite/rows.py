"""Rows of SQLite, and the same as Arrow."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from matview.sources import carried
from matview.sources.carried import Row, Where
from matview.sources.engine import SourceColumn
from matview.sources.sqlite.types import carried_as


def fetched(connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
    """All rows. A text that is not UTF-8 is kept, recognisably, so that its row can be named."""
    try:
        return connection.execute(sql, parameters).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection.execute(sql, parameters).fetchall()


def batch(rows: Sequence[Row], columns: Sequence[SourceColumn], where: Where) -> pa.RecordBatch:
    return carried.batch(rows, columns, [carried_as(column.source_type)[0] for column in columns], where)
