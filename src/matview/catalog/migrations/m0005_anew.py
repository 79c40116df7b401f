"""Schema 5: an edge whose view has to be computed anew, because no changes lead to what it reads."""

from __future__ import annotations

from sqlalchemy import Connection

STATEMENT = "ALTER TABLE matview_edge ADD COLUMN anew BOOLEAN NOT NULL DEFAULT FALSE"


def upgrade(connection: Connection) -> None:
    """From schema 4 to schema 5."""
    connection.exec_driver_sql(STATEMENT)
