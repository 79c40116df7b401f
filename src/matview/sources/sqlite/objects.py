"""What capture puts into a SQLite file, as statements: two delta tables and some triggers for each table, a register.

A delta row's label is its number. SQLite has one writer at a time, so that numbers are given in the order in which
transactions commit, and the greatest number that a snapshot shows marks a set of whole transactions. No epoch is
needed, and a reader writes nothing. Acknowledged rows go, but for the last one, which keeps its number from being given
again.

**REPLACE** (in a statement or in a constraint) deletes the rows that are in the way, and tells delete triggers only if
the writer's connection has `recursive_triggers` on. A trigger knows neither that nor what becomes of its statement. So

    before an insert or update   every row that is in the way, by rowid or by a unique index, is copied into `replaced`
    after it                     the new row is there, so whatever was in its way is not: those copies are deletions
    after an update or delete    the copy of that row is taken out of `replaced`: its change has been told

A copy that is left over, because the statement ignored the conflict, is of a row that is there as it was. It stands
until that row changes, or until the next acknowledgement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matview.sources.sqlite.layout import Layout
from matview.sources.sqlite.uniques import in_the_way, indexed, quote

NUMBER, MADE, ROW = "__number", "__made", "__row"
OWN_COLUMNS = (NUMBER, MADE, ROW)
BASE, COPIES = quote("matview base"), quote("matview copies")

REGISTER_COLUMNS = (
    "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, identity TEXT NOT NULL, "
    "added INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0)"
)


@dataclass(frozen=True, slots=True)
class Objects:
    """The names of what belongs to the table with that number in the register."""

    prefix: str
    number: int

    @property
    def added(self) -> str:
        return f"{self.prefix}_added_{self.number}"

    @property
    def deleted(self) -> str:
        return f"{self.prefix}_deleted_{self.number}"

    @property
    def replaced(self) -> str:
        return f"{self.prefix}_replaced_{self.number}"

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.added, self.deleted, self.replaced)

    @property
    def triggers(self) -> tuple[str, ...]:
        return tuple(self.trigger(event) for event in EVENTS)

    def trigger(self, event: str) -> str:
        return f"{self.prefix}_{event}_{self.number}"


EVENTS = {
    "before_insert": "BEFORE INSERT",
    "before_update": "BEFORE UPDATE",
    "after_insert": "AFTER INSERT",
    "after_update": "AFTER UPDATE",
    "after_delete": "AFTER DELETE",
    "replaced_by_insert": "AFTER INSERT",
    "replaced_by_update": "AFTER UPDATE",
    "replaced_or_deleted": "AFTER DELETE",
}


@dataclass(frozen=True, slots=True)
class Body:
    """What a trigger does, and when: most rows are in nobody's way, and cost a look at the indexes."""

    statements: Sequence[str]
    when: str = ""


def identified_by(layout: Layout) -> tuple[str, ...]:
    """The columns of a delta table that say which row of the table it is about."""
    return (ROW,) if layout.rowid is not None else tuple(part.text for part in layout.primary)


def register_of(prefix: str) -> str:
    """The table that knows which tables are captured, and how far they are acknowledged."""
    return f"{prefix}_tables"


def statements(layout: Layout, objects: Objects) -> dict[str, str]:
    """The statement that makes each object, by its name, in the order in which they are made."""
    made = {name: delta_table(name, layout) for name in (objects.added, objects.deleted)}
    made[objects.replaced] = copies_table(objects.replaced, layout)
    for place, unique in enumerate(layout.uniques):
        name = f"{objects.replaced}_{place}"
        made[name] = f"CREATE INDEX {name} ON {objects.replaced} ({indexed(unique)})"
    for event, body in bodies(layout, objects).items():
        name = objects.trigger(event)
        when = f" WHEN {body.when}" if body.when else ""
        text = "".join(f" {statement};" for statement in body.statements)
        made[name] = f"CREATE TRIGGER {name} {EVENTS[event]} ON {quote(layout.name)}{when} BEGIN{text} END"
    return made


def bodies(layout: Layout, objects: Objects) -> dict[str, Body]:
    """The triggers. Sums do not depend on their order."""
    inserted, updated = "", f"NOT ({same_row(layout, 'OLD.')}) AND "
    copies = f"EXISTS (SELECT 1 FROM {objects.replaced})"
    old, new = recorded(layout, objects.deleted, "OLD."), recorded(layout, objects.added, "NEW.")
    return {
        "before_insert": Body(copied(layout, objects, inserted), crowded(layout, inserted)),
        "before_update": Body(copied(layout, objects, updated), crowded(layout, updated)),
        "after_insert": Body([new]),
        "after_update": Body([old, new]),
        "after_delete": Body([old]),
        "replaced_by_insert": Body(replaced(layout, objects), copies),
        "replaced_by_update": Body([forgotten(layout, objects), *replaced(layout, objects)], copies),
        "replaced_or_deleted": Body([forgotten(layout, objects)], copies),
    }


def delta_table(name: str, layout: Layout) -> str:
    return (
        f"CREATE TABLE {name} ({NUMBER} INTEGER PRIMARY KEY, {MADE} REAL NOT NULL DEFAULT (julianday('now')), "
        f"{columns(layout)})"
    )


def copies_table(name: str, layout: Layout) -> str:
    if layout.rowid is not None:
        return f"CREATE TABLE {name} ({columns(layout, ' PRIMARY KEY')})"
    primary = ", ".join(f"{quote(part.text)} COLLATE {quote(part.collation)}" for part in layout.primary)
    return f"CREATE TABLE {name} ({columns(layout)}, PRIMARY KEY ({primary})) WITHOUT ROWID"


def columns(layout: Layout, of_row: str = "") -> str:
    row = [f"{ROW} INTEGER{of_row}"] if layout.rowid is not None else []
    return ", ".join([*row, *(f"{quote(column.name)} {layout.affinity(column)}" for column in layout.columns)])


def names(layout: Layout) -> str:
    """The columns of a delta table that are filled."""
    row = [ROW] if layout.rowid is not None else []
    return ", ".join([*row, *(quote(column.name) for column in layout.columns)])


def values(layout: Layout, prefix: str = "") -> str:
    """What they are filled with, from OLD, from NEW, or from the table."""
    row = [f"{prefix}{quote(layout.rowid)}"] if layout.rowid is not None else []
    return ", ".join([*row, *(f"{prefix}{quote(column.name)}" for column in layout.columns)])


# triggers -------------------------------------------------------------------------------------------------------------


def recorded(layout: Layout, delta: str, prefix: str) -> str:
    return f"INSERT INTO {delta} ({names(layout)}) VALUES ({values(layout, prefix)})"


def forgotten(layout: Layout, objects: Objects) -> str:
    """The copy of a row of whose change triggers were told."""
    return f"DELETE FROM {objects.replaced} WHERE {same_row(layout, 'OLD.', of_copies=True)}"


def crowded(layout: Layout, besides: str) -> str:
    """Whether any row is in the way."""
    base = f"FROM {quote(layout.name)} AS {alias(layout)} WHERE {besides}"
    ways = conditions(layout, lambda column: filled(layout, column))
    return " OR ".join(f"EXISTS (SELECT 1 {base}{condition})" for condition in ways)


def copied(layout: Layout, objects: Objects, besides: str) -> list[str]:
    """Rows in the way; a copy that is there already is as good. (OR IGNORE would not do: the conflict clause of the
    user's statement takes precedence in a trigger.)"""
    base = alias(layout)
    there = f"SELECT 1 FROM {objects.replaced} AS {COPIES} WHERE {same_row(layout, f'{base}.', f'{COPIES}.')}"
    return [
        f"INSERT INTO {objects.replaced} ({names(layout)}) SELECT {values(layout)} FROM {quote(layout.name)} AS {base} "
        f"WHERE {besides}{condition} AND NOT EXISTS ({there})"
        for condition in conditions(layout, lambda column: filled(layout, column))
    ]


def replaced(layout: Layout, objects: Objects) -> list[str]:
    """Copies of rows that were in the way of the new one, which is there now."""
    known_by = ", ".join(quote(name) for name in identified_by(layout))
    made = []
    for condition in conditions(layout, lambda column: f"NEW.{quote(column)}", of_copies=True):
        found = f"FROM {objects.replaced} AS {alias(layout)} WHERE {condition}"
        made += [
            f"INSERT INTO {objects.deleted} ({names(layout)}) SELECT {names(layout)} {found}",
            f"DELETE FROM {objects.replaced} WHERE ({known_by}) IN (SELECT {known_by} {found})",
        ]
    return made


def conditions(layout: Layout, new: Callable[[str], str], *, of_copies: bool = False) -> list[str]:
    """Ways to be in the way of NEW: by rowid, and by each unique index."""
    row_of_new = ", ".join(f"{new(column.name)} AS {quote(column.name)}" for column in layout.columns)
    derived = f"(SELECT {row_of_new}) AS {alias(layout)}"
    by_rowid = [same_row(layout, "NEW.", of_copies=of_copies)] if layout.rowid is not None else []
    return by_rowid + [in_the_way(unique, new, derived) for unique in layout.uniques]


def alias(layout: Layout) -> str:
    """The table's name, by which an index expression may call it; a table called NEW would hide the new row."""
    return quote(layout.name) if layout.name.lower() not in ("new", "old") else BASE


def same_row(layout: Layout, other: str, own: str = "", *, of_copies: bool = False) -> str:
    """Whether a row of the table, or with `own` or `of_copies` one of the copies, is the row with that prefix."""
    if layout.rowid is not None:
        mine = ROW if of_copies or own else quote(layout.rowid)
        return f"{own}{mine} = {other}{quote(layout.rowid)}"
    return " AND ".join(
        f"{own}{quote(part.text)} COLLATE {quote(part.collation)} = {other}{quote(part.text)}"
        for part in layout.primary
    )


def filled(layout: Layout, column: str) -> str:
    """The value that NEW will have: REPLACE puts the default for a null in a column that is NOT NULL."""
    new = f"NEW.{quote(column)}"
    return f"coalesce({new}, {layout.defaults[column]})" if column in layout.defaults else new


def removal(objects: Objects) -> Sequence[str]:
    """Statements that take everything of that number away, whatever of it is there."""
    return [
        *(f"DROP TRIGGER IF EXISTS {name}" for name in objects.triggers),
        *(f"DROP TABLE IF EXISTS {name}" for name in objects.tables),
        f"DELETE FROM {register_of(objects.prefix)} WHERE number = {objects.number:d}",
    ]
