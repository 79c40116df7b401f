"""Schema 6: who is at a source alone, adding it or reading it whole again, and until when that is believed."""

from __future__ import annotations

from sqlalchemy import Connection

STATEMENTS = (
    "ALTER TABLE matview_source ADD COLUMN holder TEXT",
    "ALTER TABLE matview_source ADD COLUMN held_until DOUBLE PRECISION NOT NULL DEFAULT 0",
)


def upgrade(connection: Connection) -> None:
    """From schema 5 to schema 6."""
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
