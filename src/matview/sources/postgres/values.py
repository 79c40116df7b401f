"""Values that no Spark type holds: found by the condition of their type, and named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from matview.errors import TypeNotCarried
from matview.sources.engine import SourceTable
from matview.sources.postgres.arrow import Unreadable
from matview.sources.postgres.connect import Connection
from matview.sources.postgres.layout import quote
from matview.sources.postgres.types import OUTPUT, Carrier


@contextmanager
def named(connection: Connection, table: SourceTable, carriers: Mapping[str, Carrier], source: str) -> Iterator[str]:
    """If rows of `source` cannot be read in the block, the error names the column, the value and the key."""
    try:
        yield source
    except Unreadable as error:
        raise culprit(connection, table, carriers, source, str(error)) from None


def culprit(
    connection: Connection, table: SourceTable, carriers: Mapping[str, Carrier], source: str, otherwise: str
) -> TypeNotCarried:
    key = " || ', ' || ".join(f"coalesce({OUTPUT.format(quote(name))}, 'NULL')" for name in table.key) or "''"
    for column, how in carriers.items():
        if how.bad is None:
            continue
        bad = how.bad.format(quote(column))
        shown = OUTPUT.format(quote(column))
        row = connection.execute(f"SELECT {shown}, {key} FROM {source} WHERE {bad} LIMIT 1").fetchone()
        if row is not None:
            where = f" in the row with key ({row[1]})" if table.key else ""
            return TypeNotCarried(
                f"{table.name}.{column} has the value {row[0]}{where}, which no value of Spark's type is",
                help="correct the value at the source; nothing was taken",
            )
    return TypeNotCarried(f"{table.name} has a value that could not be read: {otherwise}")
