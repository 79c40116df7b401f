"""Schema 7: whether the driver was to compute a refresh, or Spark: what the one took tells nothing of the other.

What was estimated was noted as corrected until now, not as it was before: that is forgotten.
"""

from __future__ import annotations

from sqlalchemy import Connection

STATEMENTS = (
    "ALTER TABLE matview_refresh ADD COLUMN at_hand BOOLEAN NOT NULL DEFAULT FALSE",
    "UPDATE matview_refresh SET estimated = 0",
)


def upgrade(connection: Connection) -> None:
    """From schema 6 to schema 7."""
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
