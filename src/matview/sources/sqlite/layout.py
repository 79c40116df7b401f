"""A table as SQLite has it: what its rows are known by, and which rows a REPLACE could make room for."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from matview.errors import CannotCapture, SourceTableUnknown, TypeNotCarried
from matview.sources.engine import SourceColumn, SourceTable
from matview.sources.names import joined, split
from matview.sources.sqlite.types import carried_as
from matview.sources.sqlite.uniques import Part, Unique, index_parts

ROWID_NAMES = ("rowid", "_rowid_", "oid")
COLLATIONS = frozenset({"BINARY", "NOCASE", "RTRIM"})
AMBIGUOUS_KEYS = frozenset({"timestamp_ntz"})
"""Types of which two different texts may be one value: no key can be made of them."""
CONSTANT = re.compile(r"[-+]?\d+(\.\d+)?|[-+]?\.\d+|'([^']|'')*'|x'[0-9a-f]*'|TRUE|FALSE", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Layout:
    """All of a table that capture depends on."""

    name: str
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    rowid: str | None
    """What the rowid is called here; None where there is none."""
    stable: bool
    """Whether rows keep what they are known by for ever: VACUUM may number them anew."""
    primary: tuple[Part, ...]
    """Of a table without rowid: its primary key."""
    uniques: tuple[Unique, ...]
    defaults: Mapping[str, str]
    """What takes the place of a null in a NOT NULL column under REPLACE."""
    computed: frozenset[str]
    """The generated columns."""

    @property
    def table(self) -> SourceTable:
        return SourceTable(joined(self.name), self.columns, self.key, self.identity)

    @property
    def identity(self) -> str:
        """A digest of everything that capture depends on."""
        parts = [
            [[c.name, c.source_type, c.nullable] for c in self.columns],
            *(list(self.key), self.rowid, self.stable, repr(self.primary), repr(self.uniques)),
            *(dict(self.defaults), sorted(self.computed)),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def affinity(self, column: SourceColumn) -> str:
        return carried_as(column.source_type)[0].affinity


def found(connection: sqlite3.Connection, name: str) -> tuple[str, str, bool] | None:
    """The name as it was written when the table was made, what kind of table it is, and whether it has no rowid."""
    parts = split(name)
    if len(parts) > 1 and parts[0].lower() == "main":
        parts = parts[1:]
    query = "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' AND lower(name) = lower(?)"
    row = connection.execute(query, parts).fetchone() if len(parts) == 1 else None
    return None if row is None else (row[0], row[1], bool(row[2]))


def layout(connection: sqlite3.Connection, name: str) -> Layout:
    """The table of that name as it is now; raises if it is not there, or cannot be carried or captured."""
    there = found(connection, name)
    if there is None or there[0].lower().startswith("sqlite_"):
        raise SourceTableUnknown(f"the source has no table {name}")
    actual, kind, without_rowid = there
    if kind != "table":
        raise CannotCapture(f"{name} is no plain table but {kind}, which has no triggers for its rows")
    query = "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?, 'main') ORDER BY cid"
    rows = connection.execute(query, (actual,)).fetchall()
    primary = [row[0] for row in sorted((row for row in rows if row[4]), key=lambda row: row[4])]
    uniques = unique_indexes(connection, actual)
    in_index = any(unique.origin == "pk" for unique in uniques)
    integer = primary[0] if len(primary) == 1 and not without_rowid and not in_index else None
    columns = tuple(described(name, row, never_null=without_rowid or row[0] == integer) for row in rows)
    return Layout(
        name=actual,
        columns=columns,
        key=usable_key(columns, primary),
        rowid=None if without_rowid else integer or free_rowid(name, {row[0].lower() for row in rows}),
        stable=without_rowid or integer is not None,
        primary=next((u.parts for u in uniques if u.origin == "pk"), ()) if without_rowid else (),
        uniques=tuple(uniques),
        defaults={row[0]: row[3] for row in rows if row[2] and row[3] is not None},
        computed=frozenset(row[0] for row in rows if row[5] in (2, 3)),
    )


def described(table: str, row: tuple[Any, ...], *, never_null: bool) -> SourceColumn:
    name, declared, not_null, _, primary, _ = row
    try:
        _, spark_type = carried_as(declared)
    except TypeNotCarried as error:
        raise TypeNotCarried(f"column {name!r} of {table}: {error.what} cannot be carried", help=error.help) from None
    return SourceColumn(name, declared, spark_type, nullable=not (not_null or (primary and never_null)))


def usable_key(columns: tuple[SourceColumn, ...], primary: list[str]) -> tuple[str, ...]:
    """The primary key, unless SQLite lets nulls into it or two of its values are carried as one."""
    by_name = {column.name: column for column in columns}
    if any(by_name[name].nullable or by_name[name].type in AMBIGUOUS_KEYS for name in primary):
        return ()
    return tuple(primary)


def free_rowid(table: str, taken: set[str]) -> str:
    for name in ROWID_NAMES:
        if name not in taken:
            return name
    raise CannotCapture(f"{table} has columns of all names of the rowid", help="rename one of rowid, oid and _rowid_")


def unique_indexes(connection: sqlite3.Connection, table: str) -> list[Unique]:
    """Every unique index, also those that constraints have made."""
    query = "SELECT name, origin, partial FROM pragma_index_list(?, 'main') WHERE \"unique\" ORDER BY name"
    uniques = []
    for name, origin, partial in connection.execute(query, (table,)).fetchall():
        info = "SELECT name, cid, coll FROM pragma_index_xinfo(?, 'main') WHERE key ORDER BY seqno"
        terms = connection.execute(info, (name,)).fetchall()
        texts: tuple[list[str], str | None] = ([], None)
        if partial or any(cid == -2 for _, cid, _ in terms):
            (sql,) = connection.execute("SELECT sql FROM main.sqlite_schema WHERE name = ?", (name,)).fetchone()
            texts = index_parts(sql)
        parts = (
            Part(texts[0][n] if cid == -2 else column, cid != -2, collation)
            for n, (column, cid, collation) in enumerate(terms)
        )
        uniques.append(Unique(tuple(parts), texts[1], origin))
    return uniques
