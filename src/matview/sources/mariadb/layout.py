"""A table as MariaDB has it, and what it is noticed by when it is another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matview.errors import CannotCapture, MatviewError, SourceTableUnknown, TypeNotCarried
from matview.sources.engine import SourceColumn, SourceTable
from matview.sources.mariadb.connect import Connection, Database, fetched
from matview.sources.mariadb.types import carried_as
from matview.sources.names import joined, split

TABLES = (
    "SELECT t.TABLE_NAME, t.TABLE_TYPE, t.ENGINE, t.CREATE_OPTIONS, CAST(t.CREATE_TIME AS CHAR), "
    "CAST(i.TABLE_ID AS CHAR), CAST(i.SPACE AS CHAR) FROM information_schema.TABLES AS t "
    "LEFT JOIN information_schema.INNODB_SYS_TABLES AS i ON CAST(i.NAME AS BINARY) = CONCAT("
    "CAST(CONVERT(DATABASE() USING filename) AS BINARY), '/', CAST(CONVERT(t.TABLE_NAME USING filename) AS BINARY)) "
    "WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = %s"
)
COLUMNS = (
    "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"
)
KEY = (
    "SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s "
    "AND CONSTRAINT_NAME = 'PRIMARY' ORDER BY ORDINAL_POSITION"
)
INDEXES = (
    "SELECT INDEX_NAME, NON_UNIQUE, COLUMN_NAME, NULLABLE, SUB_PART FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX"
)
REFERENCES = (
    "SELECT CONSTRAINT_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE "
    "(TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s AND REFERENCED_TABLE_NAME IS NOT NULL) "
    "OR (REFERENCED_TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME = %s)"
)
CASCADES = (
    "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() "
    "AND TABLE_NAME = %s "
    "AND NOT (DELETE_RULE IN ('RESTRICT', 'NO ACTION') AND UPDATE_RULE IN ('RESTRICT', 'NO ACTION'))"
)


@dataclass(frozen=True, slots=True)
class Indexes:
    """What can make an update fail, and what a row is found by. UPDATE IGNORE tells triggers also of updates that it
    ignored: because of a unique index, or of a foreign key, which stands on an index as well."""

    columns: tuple[str, ...]
    """Those in any index."""
    row: tuple[str, ...]
    """The primary key or, without one, a unique index that has no nulls."""
    unique: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """All of a table that capture depends on."""

    name: str
    columns: tuple[SourceColumn, ...]
    definitions: tuple[str, ...]
    """The columns as a delta table declares them, without what makes values of its own."""
    key: tuple[str, ...]
    indexes: Indexes
    identity: str
    """The table's numbers inside InnoDB, which TRUNCATE changes, and when it was altered last."""

    @property
    def table(self) -> SourceTable:
        return SourceTable(joined(self.name), self.columns, self.key, self.identity)


def describe(database: Database, names: Sequence[str]) -> list[SourceTable]:
    with database.connected() as connection:
        return [layout(connection, database.name, name).table for name in names]


def table_names(database: Database) -> list[str]:
    """The tables that could be captured."""
    query = (
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() "
        r"AND TABLE_TYPE = 'BASE TABLE' AND ENGINE = 'InnoDB' AND TABLE_NAME NOT LIKE 'matview\_%' ORDER BY TABLE_NAME"
    )
    with database.connected() as connection:
        return [joined(name) for (name,) in fetched(connection, query)]


def layout(connection: Connection, database: str, name: str) -> Layout:
    """The table of that name as it is now; raises if it is not there, or cannot be carried or captured."""
    parts = split(name)
    if len(parts) == 2 and parts[0] == database:
        parts = parts[1:]
    rows = fetched(connection, TABLES, parts) if len(parts) == 1 else []
    if not rows:
        raise SourceTableUnknown(f"the source has no table {name}")
    actual, kind, engine, options, altered, number, space = rows[0]
    refuse_kind(name, kind, engine, options or "")
    columns = fetched(connection, COLUMNS, (actual,))
    return Layout(
        actual,
        tuple(described(name, *row[:3]) for row in columns),
        tuple(definition(*row) for row in columns),
        tuple(column for (column,) in fetched(connection, KEY, (actual,))),
        indexes_of(fetched(connection, INDEXES, (actual,))),
        f"{number}/{space} {altered}",
    )


def indexes_of(rows: Sequence[tuple[str, int, str, str, int | None]]) -> Indexes:
    groups: dict[str, list[tuple[str, bool, bool]]] = {}
    for name, not_unique, column, nullable, prefix in rows:
        whole = not nullable and prefix is None
        groups.setdefault(name, []).append((column, not not_unique, whole))
    rows_by = [
        tuple(column for column, _, _ in parts)
        for parts in groups.values()
        if all(unique and whole for _, unique, whole in parts)
    ]
    columns = tuple(dict.fromkeys(column for parts in groups.values() for column, _, _ in parts))
    unique = any(unique for parts in groups.values() for _, unique, _ in parts)
    return Indexes(columns, rows_by[0] if rows_by else (), unique)


def refuse_kind(name: str, kind: str, engine: str | None, options: str) -> None:
    if kind != "BASE TABLE":
        raise CannotCapture(f"{name} is a {kind.lower()} and not a plain table")
    if engine != "InnoDB":
        raise CannotCapture(
            f"{name} is kept by {engine}, which has no transactions", help="ALTER TABLE ... ENGINE = InnoDB"
        )
    if "partitioned" in options:
        raise CannotCapture(f"{name} is partitioned: partitions go and are exchanged without triggers being told")


def cascades(connection: Connection, layout: Layout) -> list[MatviewError]:
    """A cascade changes rows without telling the triggers of their table."""
    return [
        CannotCapture(
            f"the foreign key {constraint} changes rows of {layout.table.name} without telling its triggers",
            help="ON DELETE and ON UPDATE must be RESTRICT or NO ACTION",
        )
        for (constraint,) in fetched(connection, CASCADES, (layout.name,))
    ]


def ignored_updates(connection: Connection, layout: Layout) -> list[MatviewError]:
    """Of a row that nothing identifies, nobody could tell whether UPDATE IGNORE has changed it."""
    if layout.indexes.row or not layout.indexes.columns:
        return []
    if not layout.indexes.unique and not fetched(connection, REFERENCES, (layout.name, layout.name)):
        return []
    what = f"{layout.table.name} has a unique index or a foreign key, and nothing that identifies a row"
    return [CannotCapture(what, help="give it a primary key: an UPDATE IGNORE could not be told from an UPDATE")]


def described(table: str, name: str, declared: str, nullable: str) -> SourceColumn:
    try:
        _, spark_type = carried_as(declared)
    except TypeNotCarried as error:
        raise TypeNotCarried(f"column {name!r} of {table}: {error.what} cannot be carried", help=error.help) from None
    return SourceColumn(name, declared, spark_type, nullable == "YES")


def definition(name: str, declared: str, _: str, character_set: str | None, collation: str | None) -> str:
    """A column of the same type that takes what it is given, null included."""
    texts = f" CHARACTER SET {character_set} COLLATE {collation}" if character_set and collation else ""
    return f"{quote(name)} {declared}{texts} NULL DEFAULT NULL"


def quote(name: str) -> str:
    """A name in SQL, taken literally."""
    return "`" + name.replace("`", "``") + "`"


def names_of(columns: Sequence[SourceColumn]) -> str:
    return ", ".join(quote(column.name) for column in columns)
