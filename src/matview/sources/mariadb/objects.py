"""What capture puts beside a MariaDB database: a database of its own with a register and, for each table, a delta table
for what each trigger adds and deletes; and three triggers for each table.

A delta table belongs to one trigger: of two that write to the same one, MariaDB lets none in a session that has locked
the table (LOCK TABLES, as its own dumps do). A view shows what all have added, another one what they have deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matview.sources.mariadb.layout import Layout, names_of, quote

NUMBER, CONNECTION, MADE, MISSED = "__number", "__connection", "__made", "__missed"
OWN_COLUMNS = (NUMBER, CONNECTION, MADE, MISSED)
"""`MISSED` is why something could not be recorded; such a row is a note, and no change."""
REGISTER = "tables"
SENTINEL = 0
"""The number of a row that always stays: an empty table a session without `unique_checks` and `foreign_key_checks`
locks for itself when it inserts, up to the end of its transaction."""

TRIGGER_MODE = "STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""Triggers run in the mode in which they were made: a delta table takes every value that the table took."""

REGISTER_COLUMNS = (
    "(number INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, "
    "name VARCHAR(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
    "made VARCHAR(2000) CHARACTER SET ascii NULL)"
)
"""`made` is when the triggers and delta tables were made, and null until they all are."""


EVENTS = {"insert": ("added",), "delete": ("deleted",), "update": ("deleted", "added")}
"""The triggers, and the sides on which each records."""
LOCK = "LOCK IN SHARE MODE"
IMAGE = {"added": "NEW", "deleted": "OLD"}


@dataclass(frozen=True, slots=True)
class Objects:
    """The names of what belongs to the table with that number in the register."""

    own: str
    prefix: str
    number: int

    def side(self, side: str) -> str:
        """A view: all changes of one side."""
        return self.place(f"{side}_{self.number}")

    def delta(self, event: str, side: str) -> str:
        """The name of the table in which one trigger records."""
        return f"{event}_{side}_{self.number}"

    def deltas(self, side: str) -> list[str]:
        return [self.delta(event, side) for event, sides in EVENTS.items() if side in sides]

    def numbers(self, side: str) -> str:
        """The name of the sequence that numbers one side."""
        return f"{side}_numbers_{self.number}"

    def trigger(self, event: str) -> str:
        return f"{self.prefix}_{self.number}_{event}"

    def place(self, name: str) -> str:
        """One of the names above in SQL."""
        return f"{quote(self.own)}.{name}"


# delta tables ---------------------------------------------------------------------------------------------------------


def delta_tables(layout: Layout, objects: Objects, side: str) -> list[str]:
    """Numbers are given without waiting for others, are never given twice, and not in the order of commits. They come
    from a sequence: those of AUTO_INCREMENT a session may choose (`SET insert_id`)."""
    deltas = [objects.place(delta) for delta in objects.deltas(side)]
    changes = f"{NUMBER} > {SENTINEL} AND {MISSED} IS NULL"
    shown = " UNION ALL ".join(f"SELECT * FROM {delta} WHERE {changes}" for delta in deltas)
    return [
        f"CREATE SEQUENCE {objects.place(objects.numbers(side))} ENGINE = InnoDB",
        *(statement for delta in deltas for statement in delta_table(layout, delta)),
        f"CREATE SQL SECURITY INVOKER VIEW {objects.side(side)} AS {shown}",
    ]


def delta_table(layout: Layout, delta: str) -> list[str]:
    return [
        f"CREATE TABLE {delta} ({NUMBER} BIGINT UNSIGNED NOT NULL PRIMARY KEY, "
        f"{CONNECTION} BIGINT UNSIGNED NOT NULL, {MADE} TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), "
        f"{MISSED} TEXT CHARACTER SET utf8mb4 NULL, {', '.join(layout.definitions)}) "
        "ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
        f"INSERT INTO {delta} ({NUMBER}, {CONNECTION}) VALUES ({SENTINEL}, 0)",
    ]


# triggers -------------------------------------------------------------------------------------------------------------


def trigger(layout: Layout, objects: Objects, event: str) -> str:
    """It runs with the rights of who made it: writers need none, and get none."""
    return (
        f"CREATE DEFINER = CURRENT_USER TRIGGER {objects.trigger(event)} AFTER {event.upper()} ON {quote(layout.name)} "
        f"FOR EACH ROW {body(layout, objects, event)}"
    )


LOGGING = (1197, 1534, 1705)
"""Errors of the binary log, which may have lost rows of the user's own: those are the user's to know."""


def body(layout: Layout, objects: Objects, event: str) -> str:
    """What cannot be recorded, most often since the table was altered, is noted, and the user's write goes on. It
    fails if even that cannot be: nothing is lost in silence. (Where the transaction cannot go on, as after a deadlock,
    MariaDB asks no handler.)"""
    values = {side: [f"{IMAGE[side]}.{quote(column.name)}" for column in layout.columns] for side in EVENTS[event]}
    names = names_of(layout.columns)
    statements = " ".join(f"{recorded(objects, event, side, names, values[side])};" for side in EVENTS[event])
    if event == "update" and layout.indexes.row:
        statements = f"IF {happened(layout)} THEN {statements} END IF;"
    return (
        f"BEGIN DECLARE EXIT HANDLER FOR {', '.join(map(str, LOGGING))} RESIGNAL; "
        f"DECLARE EXIT HANDLER FOR SQLEXCEPTION {noted(objects, event)}; {statements} END"
    )


def recorded(objects: Objects, event: str, side: str, names: str, values: Sequence[str]) -> str:
    return (
        f"INSERT INTO {objects.place(objects.delta(event, side))} ({NUMBER}, {CONNECTION}, {names}) VALUES "
        f"(NEXT VALUE FOR {objects.place(objects.numbers(side))}, CONNECTION_ID(), {', '.join(values)})"
    )


def noted(objects: Objects, event: str) -> str:
    """A session may have chosen to be told nothing of errors (`max_error_count`)."""
    note = recorded(objects, event, EVENTS[event][0], MISSED, ["COALESCE(told, 'for a reason that is not known')"])
    return (
        f"BEGIN DECLARE told TEXT CHARACTER SET utf8mb4; GET DIAGNOSTICS CONDITION 1 told = MESSAGE_TEXT; {note}; END"
    )


def happened(layout: Layout) -> str:
    """Whether an update took place: AFTER UPDATE triggers are told also of rows that UPDATE IGNORE left as they were.

    It did if no column of an index changes. Otherwise the row is looked up by what identifies it: as it is, and not as
    the transaction's snapshot shows it. The lock for that the update has already.
    """
    indexes, row = layout.indexes, f"SELECT 1 FROM {quote(layout.name)} AS r WHERE"
    same = pairs("OLD", "<=>", "NEW", indexes.columns)
    still_there = (
        f"EXISTS ({row} {pairs('r', '=', 'NEW', indexes.row)} AND {pairs('r', '<=>', 'NEW', indexes.columns)} {LOCK})"
    )
    moved_away = f"NOT EXISTS ({row} {pairs('r', '=', 'OLD', indexes.row)} {LOCK})"
    return f"({same}) OR IF({pairs('OLD', '<=>', 'NEW', indexes.row)}, {still_there}, {moved_away})"


def pairs(left: str, sign: str, right: str, columns: Sequence[str]) -> str:
    return " AND ".join(f"{left}.{quote(name)} {sign} {right}.{quote(name)}" for name in columns)
