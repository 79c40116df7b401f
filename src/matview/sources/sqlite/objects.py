"""What capture puts into a SQLite file, as statements: two delta tables and some triggers for each table, a register.

A delta row's label is its number. SQLite has one writer at a time, so that numbers are given in the order in which
transactions commit, and the greatest number that a snapshot shows marks a set of whole transactions. No epoch is
needed: a reader that takes a set writes nothing. Acknowledged rows go, but for the last one, which keeps its number
from being given again.
"""

from __future__ import annotations

from collections.abc import Sequence

from matview.sources.sqlite.layout import Layout
from matview.sources.sqlite.recording import ROW, THERE, Objects, triggers
from matview.sources.sqlite.uniques import quote

NUMBER, MADE = "__number", "__made"
OWN_COLUMNS = (NUMBER, MADE, ROW, THERE)

REGISTER_COLUMNS = (
    "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, identity TEXT NOT NULL, "
    "added INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0)"
)


def register_of(prefix: str) -> str:
    """The table that knows which tables are captured, and how far they are acknowledged."""
    return f"{prefix}_tables"


def statements(layout: Layout, objects: Objects) -> dict[str, str]:
    """The statement that makes each object, by its name, in the order in which they are made."""
    made = {name: delta_table(name, layout) for name in (objects.added, objects.deleted)}
    made[objects.marked] = marks_table(objects.marked, layout)
    return made | {objects.trigger(event): text for event, text in triggers(layout, objects).items()}


def delta_table(name: str, layout: Layout) -> str:
    return (
        f"CREATE TABLE {name} ({NUMBER} INTEGER PRIMARY KEY, {MADE} REAL NOT NULL DEFAULT (julianday('now')), "
        f"{columns(layout)})"
    )


def marks_table(name: str, layout: Layout) -> str:
    there = f"{THERE} INTEGER NOT NULL DEFAULT 1"
    if layout.rowid is not None:
        return f"CREATE TABLE {name} ({there}, {columns(layout, ' PRIMARY KEY')})"
    primary = ", ".join(f"{quote(part.text)} COLLATE {quote(part.collation)}" for part in layout.primary)
    return f"CREATE TABLE {name} ({there}, {columns(layout)}, PRIMARY KEY ({primary})) WITHOUT ROWID"


def columns(layout: Layout, of_row: str = "") -> str:
    row = [f"{ROW} INTEGER{of_row}"] if layout.rowid is not None else []
    return ", ".join([*row, *(f"{quote(column.name)} {layout.affinity(column)}" for column in layout.columns)])


def removal(objects: Objects) -> Sequence[str]:
    """Statements that take everything of that number away, whatever of it is there."""
    return [
        *(f"DROP TRIGGER IF EXISTS {name}" for name in objects.triggers),
        *(f"DROP TABLE IF EXISTS {name}" for name in objects.tables),
        f"DELETE FROM {register_of(objects.prefix)} WHERE number = {objects.number:d}",
    ]
