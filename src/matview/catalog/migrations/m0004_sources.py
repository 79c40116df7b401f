"""Schema 4: sources, their tables, and the rounds that take changes over from them."""

from __future__ import annotations

from sqlalchemy import Connection

STATEMENTS = (
    """
    CREATE TABLE matview_source (
        id TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        name_folded TEXT NOT NULL UNIQUE,
        url TEXT NOT NULL,
        mode TEXT NOT NULL CHECK (mode IN ('strong', 'complete')),
        state TEXT NOT NULL CHECK (state IN ('adding', 'active', 'removing')),
        sequence BIGINT NOT NULL,
        added_at DOUBLE PRECISION NOT NULL,
        captured_at DOUBLE PRECISION,
        transactions BIGINT NOT NULL,
        rows BIGINT NOT NULL,
        error TEXT
    )""",
    """
    CREATE TABLE matview_source_table (
        source_id TEXT NOT NULL,
        name TEXT NOT NULL,
        place BIGINT NOT NULL,
        table_name TEXT NOT NULL,
        table_id BIGINT,
        identity TEXT NOT NULL,
        definition TEXT NOT NULL,
        replicate BOOLEAN NOT NULL,
        error TEXT,
        PRIMARY KEY (source_id, name)
    )""",
    """
    CREATE TABLE matview_round (
        number BIGINT NOT NULL PRIMARY KEY,
        state TEXT NOT NULL CHECK (state IN ('fixed', 'computed', 'installed', 'done', 'discarded')),
        began_at DOUBLE PRECISION NOT NULL,
        installed_at DOUBLE PRECISION,
        ended_at DOUBLE PRECISION,
        vn BIGINT
    )""",
    """
    CREATE TABLE matview_round_source (
        number BIGINT NOT NULL,
        source_id TEXT NOT NULL,
        tables TEXT NOT NULL,
        taken TEXT NOT NULL,
        transactions BIGINT NOT NULL,
        rows BIGINT NOT NULL,
        files TEXT NOT NULL,
        acknowledged BOOLEAN NOT NULL,
        PRIMARY KEY (number, source_id)
    )""",
)


def upgrade(connection: Connection) -> None:
    """From schema 3 to schema 4."""
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
