"""Other triggers of a captured table. Sums do not depend on the order of triggers; marks do (see `recording`).

Rows that REPLACE deletes are marked before the statement's own change, so no BEFORE trigger may put others in its way
after that; and no AFTER trigger may mark a row whose change is not recorded yet. SQLite runs the trigger first that was
made last, which is ours unless somebody has made another one since.
"""

from __future__ import annotations

import sqlite3

from matview.sources.sqlite.layout import Layout
from matview.sources.sqlite.uniques import quote

WRITES = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)


def order_matters(connection: sqlite3.Connection, layout: Layout, prefix: str, *, before_only: bool = False) -> bool:
    """Whether a trigger of somebody else's stands where it could hide a deletion, and writes to the table.

    Before capture is installed only BEFORE triggers count: those that are there are older, and run later.
    """
    query = (
        "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?) ORDER BY rowid"
    )
    triggers = connection.execute(query, (layout.name,)).fetchall()
    others = [name for name, _ in triggers if not name.startswith(f"{prefix}_")]
    last = triggers[-1][0] if triggers else ""
    if not any(is_before(sql) for name, sql in triggers if name in others) and (before_only or last not in others):
        return False
    return writes_again(connection, layout)


def is_before(sql: str) -> bool:
    """Whether it may be a BEFORE trigger: also when nothing is said, which means the same."""
    head = sql.upper().partition("BEGIN")[0].split()
    return "AFTER" not in head


def writes_again(connection: sqlite3.Connection, layout: Layout) -> bool:
    """Whether a write to the table makes a trigger write to it, by whatever way: SQLite's own compiler tells."""
    again = list[str]()

    def noted(action: int, table: str | None, _column: str | None, _schema: str | None, trigger: str | None) -> int:
        if action in WRITES and trigger is not None and str(table).lower() == layout.name.lower():
            again.append(trigger)
        return sqlite3.SQLITE_OK

    table = quote(layout.name)
    every = ", ".join(f"{quote(c.name)} = {quote(c.name)}" for c in layout.columns if c.name not in layout.computed)
    connection.set_authorizer(noted)
    try:
        connection.execute(f"EXPLAIN INSERT INTO {table} DEFAULT VALUES").close()
        connection.execute(f"EXPLAIN UPDATE {table} SET {every}").close()
        connection.execute(f"EXPLAIN DELETE FROM {table}").close()
    except sqlite3.Error:
        return True  # a function that only the user's program has: nobody here can tell
    finally:
        connection.set_authorizer(None)
    return bool(again)
