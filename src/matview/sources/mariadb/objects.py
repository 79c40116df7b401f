"""What capture puts beside a MariaDB database: a database of its own with two delta tables for each table and a
register, and three triggers for each table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matview.sources.mariadb.layout import Layout, names_of, quote

NUMBER, CONNECTION, MADE = "__number", "__connection", "__made"
OWN_COLUMNS = (NUMBER, CONNECTION, MADE)
REGISTER = "tables"

TRIGGER_MODE = "STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""Triggers run in the mode in which they were made: a delta table takes every value that the table took."""

REGISTER_COLUMNS = (
    "(number INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, "
    "name VARCHAR(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, "
    "made VARCHAR(200) CHARACTER SET ascii NULL)"
)
"""`made` is when the triggers were made, and null until they all are."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The names of what belongs to the table with that number in the register."""

    own: str
    prefix: str
    number: int

    def delta(self, side: str) -> str:
        return f"{quote(self.own)}.{side}_{self.number}"

    def trigger(self, event: str) -> str:
        return f"{self.prefix}_{self.number}_{event}"


EVENTS = {"insert": ("added",), "delete": ("deleted",), "update": ("deleted", "added")}
LOCK = "LOCK IN SHARE MODE"
IMAGE = {"added": "NEW", "deleted": "OLD"}


def delta_table(layout: Layout, objects: Objects, side: str) -> str:
    """Numbers are given without waiting for others, are never given twice, and not in the order of commits."""
    return (
        f"CREATE TABLE {objects.delta(side)} ({NUMBER} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, "
        f"{CONNECTION} BIGINT UNSIGNED NOT NULL, {MADE} TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), "
        f"{', '.join(layout.definitions)}) ENGINE = InnoDB ROW_FORMAT = DYNAMIC"
    )


def body(layout: Layout, objects: Objects, event: str) -> str:
    statements = [recorded(layout, objects, side) for side in EVENTS[event]]
    if len(statements) == 1:
        return statements[0]
    together = " ".join(f"{one};" for one in statements)
    return f"IF {happened(layout)} THEN {together} END IF" if layout.indexes.row else f"BEGIN {together} END"


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


def recorded(layout: Layout, objects: Objects, side: str) -> str:
    values = ", ".join(f"{IMAGE[side]}.{quote(column.name)}" for column in layout.columns)
    return (
        f"INSERT INTO {objects.delta(side)} ({CONNECTION}, {names_of(layout.columns)}) "
        f"VALUES (CONNECTION_ID(), {values})"
    )


def trigger(layout: Layout, objects: Objects, event: str) -> str:
    """It runs with the rights of who made it: writers need none, and get none."""
    return (
        f"CREATE DEFINER = CURRENT_USER TRIGGER {objects.trigger(event)} AFTER {event.upper()} ON {quote(layout.name)} "
        f"FOR EACH ROW {body(layout, objects, event)}"
    )
