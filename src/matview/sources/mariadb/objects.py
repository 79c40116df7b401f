"""What capture puts beside a MariaDB database: a database of its own with a register and, for each table, a delta table
for what each trigger adds and deletes; and three triggers for each table.

A delta table belongs to one trigger: of two that write to the same one, MariaDB lets none in a session that has locked
the table (LOCK TABLES, as its own dumps do). A view shows what all have added, another one what they have deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pymysql.constants import ER

from matview.sources.mariadb.layout import Layout, names_of, quote

NUMBER, CONNECTION, MADE, MISSED = "__number", "__connection", "__made", "__missed"
OWN_COLUMNS = (NUMBER, CONNECTION, MADE, MISSED)
"""`MISSED` is why something could not be recorded; such a row is no change."""
REGISTER = "tables"
NONE = 0
"""The number of a row that is no change. It stays: what is empty, a session without `unique_checks` and
`foreign_key_checks` locks for itself when it inserts, up to the end of its transaction."""

TRIGGER_MODE = "STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""Triggers run in the mode in which they were made: a delta table takes every value that the table took."""

REGISTER_COLUMNS = (
    "(number INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, "
    "name VARCHAR(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
    "made VARCHAR(200) CHARACTER SET ascii NULL)"
)
"""`made` is when the triggers were made, and null until they all are."""


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
        """A view: all delta rows of one side."""
        return self._named(side)

    def delta(self, event: str, side: str) -> str:
        """The table in which one trigger records."""
        return self._named(f"{event}_{side}")

    def deltas(self, side: str) -> list[str]:
        return [self.delta(event, side) for event, sides in EVENTS.items() if side in sides]

    def numbers(self, side: str) -> str:
        return self._named(f"{side}_numbers")

    def trigger(self, event: str) -> str:
        return f"{self.prefix}_{self.number}_{event}"

    def _named(self, what: str) -> str:
        return f"{quote(self.own)}.{what}_{self.number}"


# delta tables ---------------------------------------------------------------------------------------------------------


def delta_tables(layout: Layout, objects: Objects, side: str) -> list[str]:
    """Numbers are given without waiting for others, are never given twice, and not in the order of commits. They come
    from a sequence: those of AUTO_INCREMENT a session may choose (`SET insert_id`)."""
    shown = " UNION ALL ".join(f"SELECT * FROM {delta} WHERE {NUMBER} > {NONE}" for delta in objects.deltas(side))
    return [
        f"CREATE SEQUENCE {objects.numbers(side)} ENGINE = InnoDB",
        *(statement for delta in objects.deltas(side) for statement in delta_table(layout, delta)),
        f"CREATE SQL SECURITY INVOKER VIEW {objects.side(side)} AS {shown}",
    ]


def delta_table(layout: Layout, delta: str) -> list[str]:
    return [
        f"CREATE TABLE {delta} ({NUMBER} BIGINT UNSIGNED NOT NULL PRIMARY KEY, "
        f"{CONNECTION} BIGINT UNSIGNED NOT NULL, {MADE} TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), "
        f"{MISSED} TEXT CHARACTER SET utf8mb4 NULL, {', '.join(layout.definitions)}) "
        "ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
        f"INSERT INTO {delta} ({NUMBER}, {CONNECTION}) VALUES ({NONE}, 0)",
    ]


# triggers -------------------------------------------------------------------------------------------------------------


def trigger(layout: Layout, objects: Objects, event: str) -> str:
    """It runs with the rights of who made it: writers need none, and get none."""
    return (
        f"CREATE DEFINER = CURRENT_USER TRIGGER {objects.trigger(event)} AFTER {event.upper()} ON {quote(layout.name)} "
        f"FOR EACH ROW {body(layout, objects, event)}"
    )


def body(layout: Layout, objects: Objects, event: str) -> str:
    """A write of the source's users does not fail because of capture: what cannot be recorded, since the table was
    altered, is noted. (Where the transaction cannot go on, as after a deadlock, MariaDB asks no handler.)"""
    values = {side: [f"{IMAGE[side]}.{quote(column.name)}" for column in layout.columns] for side in EVENTS[event]}
    names = names_of(layout.columns)
    statements = " ".join(f"{recorded(objects, event, side, names, values[side])};" for side in EVENTS[event])
    if event == "update" and layout.indexes.row:
        statements = f"IF {happened(layout)} THEN {statements} END IF;"
    return f"BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION {noted(objects, event)}; {statements} END"


def recorded(objects: Objects, event: str, side: str, names: str, values: Sequence[str]) -> str:
    return (
        f"INSERT INTO {objects.delta(event, side)} ({NUMBER}, {CONNECTION}, {names}) "
        f"VALUES (NEXT VALUE FOR {objects.numbers(side)}, CONNECTION_ID(), {', '.join(values)})"
    )


def noted(objects: Objects, event: str) -> str:
    """Where even the delta table is gone, nothing is: that it is gone is noticed."""
    return (
        f"BEGIN DECLARE told TEXT CHARACTER SET utf8mb4; DECLARE EXIT HANDLER FOR {ER.NO_SUCH_TABLE} BEGIN END; "
        f"GET DIAGNOSTICS CONDITION 1 told = MESSAGE_TEXT; "
        f"{recorded(objects, event, EVENTS[event][0], MISSED, ['told'])}; END"
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
