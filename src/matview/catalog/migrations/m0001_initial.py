"""Schema 1: versions, lease, transactions, tables, sessions, garbage, settings.

The text is SQL that SQLite and PostgreSQL both read.
"""

from __future__ import annotations

from sqlalchemy import Connection

STATEMENTS = (
    """
    CREATE TABLE matview_schema (
        number INTEGER NOT NULL
    )""",
    """
    CREATE TABLE matview_version (
        id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
        current_vn BIGINT NOT NULL CHECK (current_vn >= 1),
        maintenance_active BOOLEAN NOT NULL,
        versions INTEGER NOT NULL CHECK (versions >= 2),
        floor BIGINT NOT NULL CHECK (floor <= current_vn),
        gc_horizon BIGINT NOT NULL CHECK (gc_horizon <= gc_claim),
        gc_claim BIGINT NOT NULL CHECK (gc_claim <= current_vn),
        next_table_id BIGINT NOT NULL
    )""",
    """
    CREATE TABLE matview_lease (
        id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
        token BIGINT NOT NULL,
        holder TEXT,
        acquired_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION NOT NULL
    )""",
    """
    CREATE TABLE matview_transaction (
        token BIGINT NOT NULL PRIMARY KEY,
        vn BIGINT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('active', 'committing', 'committed', 'aborted')),
        holder TEXT NOT NULL,
        began_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION,
        journal TEXT NOT NULL,
        summary TEXT NOT NULL,
        error TEXT,
        tail_done BOOLEAN NOT NULL
    )""",
    "CREATE UNIQUE INDEX matview_one_commit_of_a_version ON matview_transaction (vn) WHERE state = 'committed'",
    "CREATE INDEX matview_unfinished ON matview_transaction (tail_done, token)",
    """
    CREATE TABLE matview_table (
        id BIGINT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        name_folded TEXT NOT NULL,
        definition TEXT NOT NULL,
        properties TEXT NOT NULL,
        directory TEXT NOT NULL,
        created_vn BIGINT NOT NULL,
        dropped_vn BIGINT CHECK (dropped_vn >= created_vn),
        next_rid BIGINT NOT NULL CHECK (next_rid >= 0)
    )""",
    "CREATE UNIQUE INDEX matview_one_live_table_of_a_name ON matview_table (name_folded) WHERE dropped_vn IS NULL",
    """
    CREATE TABLE matview_session (
        id TEXT NOT NULL PRIMARY KEY,
        version BIGINT NOT NULL,
        holder TEXT NOT NULL,
        grain TEXT NOT NULL CHECK (grain IN ('tuple', 'table', 'global')),
        ttl DOUBLE PRECISION NOT NULL CHECK (ttl > 0),
        opened_at DOUBLE PRECISION NOT NULL,
        heartbeat_at DOUBLE PRECISION NOT NULL,
        closed_at DOUBLE PRECISION,
        reason TEXT CHECK (reason IN ('closed', 'dead', 'expired')),
        CHECK ((closed_at IS NULL) = (reason IS NULL))
    )""",
    "CREATE INDEX matview_open_sessions ON matview_session (version) WHERE closed_at IS NULL",
    "CREATE INDEX matview_newest_sessions ON matview_session (opened_at)",
    """
    CREATE TABLE matview_garbage (
        table_id BIGINT NOT NULL,
        path TEXT NOT NULL,
        removed_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (table_id, path)
    )""",
    """
    CREATE TABLE matview_setting (
        name TEXT NOT NULL PRIMARY KEY,
        value TEXT NOT NULL
    )""",
)


def upgrade(connection: Connection) -> None:
    """From an empty database to schema 1."""
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
