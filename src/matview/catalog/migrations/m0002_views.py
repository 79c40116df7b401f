"""Schema 2: materialized views, the logs of tables that views read, edges, and what refreshes cost."""

from __future__ import annotations

from sqlalchemy import Connection

STATEMENTS = (
    """
    CREATE TABLE matview_view (
        table_id BIGINT NOT NULL PRIMARY KEY,
        query TEXT NOT NULL,
        policy TEXT NOT NULL CHECK (policy IN ('auto', 'incremental', 'strict', 'full')),
        owner_id BIGINT,
        reason TEXT
    )""",
    """
    CREATE TABLE matview_edge (
        parent_id BIGINT NOT NULL,
        child_id BIGINT NOT NULL,
        consumed_vn BIGINT NOT NULL,
        PRIMARY KEY (parent_id, child_id)
    )""",
    "CREATE INDEX matview_edges_of_child ON matview_edge (child_id)",
    """
    CREATE TABLE matview_log (
        table_id BIGINT NOT NULL,
        vn BIGINT NOT NULL,
        inserted BIGINT NOT NULL,
        updated BIGINT NOT NULL,
        deleted BIGINT NOT NULL,
        columns TEXT NOT NULL,
        files TEXT NOT NULL,
        PRIMARY KEY (table_id, vn)
    )""",
    """
    CREATE TABLE matview_refresh (
        name_folded TEXT NOT NULL,
        vn BIGINT NOT NULL,
        strategy TEXT NOT NULL,
        estimated DOUBLE PRECISION NOT NULL,
        seconds DOUBLE PRECISION NOT NULL,
        rows BIGINT NOT NULL,
        refreshed_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (name_folded, vn)
    )""",
)


def upgrade(connection: Connection) -> None:
    """From schema 1 to schema 2."""
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
