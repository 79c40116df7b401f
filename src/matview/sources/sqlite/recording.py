"""The triggers of a captured table: two delta tables are filled with what it loses and what it gains.

**REPLACE** (in a statement or in a constraint) deletes the rows that are in the way, and tells delete triggers only if
the writer's connection has `recursive_triggers` on. A trigger knows neither that nor what becomes of its statement; and
cascades that begin with such a row may change or delete others, even the row that is being updated, before it is
written. So from the first row on that is in the way of another, rows are *marked*, with what they were:

    before an insert      every row in its way, by rowid or by a unique index
    before an update      the same, the row itself, and the rowid that it is moved to, where nothing was

What happens to a row that is marked is not recorded. Whoever reads next compares each mark with the row that is there
now, records the difference, and takes the marks away (`settling`): it does not depend on what happened in between.
Inserts, updates and deletes of rows that are not marked are recorded as they happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matview.sources.sqlite.layout import Layout
from matview.sources.sqlite.uniques import in_the_way, quote

ROW, THERE = "__row", "__there"
"""The columns of delta tables and of marks that have the rowid, and of marks, whether there was a row."""
BASE, MARKS = quote("matview base"), quote("matview marks")

EVENTS = {
    "before_insert": "BEFORE INSERT",
    "before_update": "BEFORE UPDATE",
    "after_insert": "AFTER INSERT",
    "after_update": "AFTER UPDATE",
    "after_delete": "AFTER DELETE",
    "after_insert_beside_marks": "AFTER INSERT",
    "after_update_beside_marks": "AFTER UPDATE",
    "after_delete_beside_marks": "AFTER DELETE",
}


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
    def marked(self) -> str:
        return f"{self.prefix}_marked_{self.number}"

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.added, self.deleted, self.marked)

    @property
    def triggers(self) -> tuple[str, ...]:
        return tuple(self.trigger(event) for event in EVENTS)

    def trigger(self, event: str) -> str:
        return f"{self.prefix}_{event}_{self.number}"


@dataclass(frozen=True, slots=True)
class Body:
    """What a trigger does, and when: most rows are in nobody's way, and cost a look at the indexes."""

    statements: Sequence[str]
    when: str


def triggers(layout: Layout, objects: Objects) -> dict[str, str]:
    """The statement for each event."""
    made = {}
    for event, body in bodies(layout, objects).items():
        text = "".join(f" {statement};" for statement in body.statements)
        head = f"CREATE TRIGGER {objects.trigger(event)} {EVENTS[event]} ON {quote(layout.name)}"
        made[event] = f"{head} WHEN {body.when} BEGIN{text} END"
    return made


def bodies(layout: Layout, objects: Objects) -> dict[str, Body]:
    """Their order does not matter: sums do not depend on it, and nothing is marked after a change."""
    marks = f"EXISTS (SELECT 1 FROM {objects.marked})"
    others = f"NOT ({same_row(layout, 'OLD.')}) AND "
    old, new = (objects.deleted, "OLD."), (objects.added, "NEW.")
    itself = [marked_itself(layout, objects), marked_place(layout, objects)]
    return {
        "before_insert": Body(marked(layout, objects, ""), crowded(layout, "")),
        "before_update": Body([*marked(layout, objects, others), *itself], f"{marks} OR {crowded(layout, others)}"),
        "after_insert": Body(recorded(layout, new), f"NOT {marks}"),
        "after_update": Body(recorded(layout, old, new), f"NOT {marks}"),
        "after_delete": Body(recorded(layout, old), f"NOT {marks}"),
        "after_insert_beside_marks": Body(recorded_unless_marked(layout, objects, new), marks),
        "after_update_beside_marks": Body(recorded_unless_marked(layout, objects, old, new), marks),
        "after_delete_beside_marks": Body(recorded_unless_marked(layout, objects, old), marks),
    }


def identified_by(layout: Layout) -> tuple[str, ...]:
    """The columns of a delta table that say which row of the table it is about."""
    return (ROW,) if layout.rowid is not None else tuple(part.text for part in layout.primary)


def names(layout: Layout) -> str:
    """The columns of a delta table that are filled."""
    row = [ROW] if layout.rowid is not None else []
    return ", ".join([*row, *(quote(column.name) for column in layout.columns)])


def values(layout: Layout, prefix: str = "") -> str:
    """What they are filled with, from OLD, from NEW, or from the table."""
    row = [f"{prefix}{quote(layout.rowid)}"] if layout.rowid is not None else []
    return ", ".join([*row, *(f"{prefix}{quote(column.name)}" for column in layout.columns)])


def recorded(layout: Layout, *images: tuple[str, str]) -> list[str]:
    return [f"INSERT INTO {delta} ({names(layout)}) VALUES ({values(layout, prefix)})" for delta, prefix in images]


def recorded_unless_marked(layout: Layout, objects: Objects, *images: tuple[str, str]) -> list[str]:
    return [
        f"INSERT INTO {delta} ({names(layout)}) SELECT {values(layout, prefix)} "
        f"WHERE NOT EXISTS ({mark_of(layout, objects, prefix)})"
        for delta, prefix in images
    ]


def mark_of(layout: Layout, objects: Objects, prefix: str) -> str:
    return f"SELECT 1 FROM {objects.marked} AS {MARKS} WHERE {same_row(layout, prefix, f'{MARKS}.')}"


def crowded(layout: Layout, besides: str) -> str:
    """Whether any row is in the way."""
    base = f"FROM {quote(layout.name)} AS {alias(layout)} WHERE {besides}"
    return " OR ".join(f"EXISTS (SELECT 1 {base}{condition})" for condition in conditions(layout))


def marked(layout: Layout, objects: Objects, besides: str) -> list[str]:
    """Rows in the way; the first mark of a row is the one that counts. (OR IGNORE would not do: the conflict clause of
    the user's statement takes precedence in a trigger.)"""
    base = alias(layout)
    return [
        f"INSERT INTO {objects.marked} ({names(layout)}) SELECT {values(layout)} FROM {quote(layout.name)} AS {base} "
        f"WHERE {besides}{condition} AND NOT EXISTS ({mark_of(layout, objects, f'{base}.')})"
        for condition in conditions(layout)
    ]


def marked_itself(layout: Layout, objects: Objects) -> str:
    mark = f"INSERT INTO {objects.marked} ({names(layout)}) SELECT {values(layout, 'OLD.')}"
    return f"{mark} WHERE NOT EXISTS ({mark_of(layout, objects, 'OLD.')})"


def marked_place(layout: Layout, objects: Objects) -> str:
    """Where a row is moved to, nothing was, unless it was marked just now."""
    known_by = ", ".join(quote(name) for name in identified_by(layout))
    new = ", ".join(new_place(layout))
    free = f"NOT EXISTS ({mark_of(layout, objects, 'NEW.')})"
    return f"INSERT INTO {objects.marked} ({THERE}, {known_by}) SELECT 0, {new} WHERE {free}"


def new_place(layout: Layout) -> list[str]:
    if layout.rowid is not None:
        return [f"NEW.{quote(layout.rowid)}"]
    return [filled(layout, part.text) for part in layout.primary]


def conditions(layout: Layout) -> list[str]:
    """Ways to be in the way of NEW: by rowid, and by each unique index."""
    row_of_new = ", ".join(f"{filled(layout, column.name)} AS {quote(column.name)}" for column in layout.columns)
    derived = f"(SELECT {row_of_new}) AS {alias(layout)}"
    by_rowid = [same_row(layout, "NEW.")] if layout.rowid is not None else []
    return by_rowid + [in_the_way(unique, lambda column: filled(layout, column), derived) for unique in layout.uniques]


def alias(layout: Layout) -> str:
    """The table's name, by which an index expression may call it; a table called NEW would hide the new row."""
    return quote(layout.name) if layout.name.lower() not in ("new", "old") else BASE


def same_row(layout: Layout, other: str, own: str = "") -> str:
    """Whether a row of the table, or with `own` a mark, is of the row with that prefix."""
    if layout.rowid is not None:
        return f"{own}{ROW if own else quote(layout.rowid)} = {other}{quote(layout.rowid)}"
    return " AND ".join(
        f"{own}{quote(part.text)} COLLATE {quote(part.collation)} = {other}{quote(part.text)}"
        for part in layout.primary
    )


def filled(layout: Layout, column: str) -> str:
    """The value that NEW will have: REPLACE puts the default for a null in a column that is NOT NULL."""
    new = f"NEW.{quote(column)}"
    return f"coalesce({new}, {layout.defaults[column]})" if column in layout.defaults else new
