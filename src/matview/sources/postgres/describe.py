"""Tables of a PostgreSQL source from its system catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matview.errors import CannotCapture, SourceTableUnknown, TypeNotCarried
from matview.sources.engine import SourceColumn, SourceTable
from matview.sources.names import joined, split
from matview.sources.postgres.connect import Connection
from matview.sources.postgres.layout import OUR_SCHEMA
from matview.sources.postgres.types import Carrier, SourceType, carrier

KINDS = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "S": "a sequence",
    "i": "an index",
    "c": "a composite type",
    "t": "a TOAST table",
}

FIND = """
    SELECT c.oid::bigint, c.relkind::text, n.nspname, c.relname
    FROM (SELECT %s::text[], %s::text) AS given(schemas, name),
         pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname IN (given.name, lower(given.name)) AND n.nspname = ANY(given.schemas)
      AND c.relkind NOT IN ('i', 'I')
    ORDER BY c.relname = given.name DESC, array_position(given.schemas, n.nspname::text) LIMIT 1
"""
ALL = """
    SELECT n.nspname, c.relname, place IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_class AS o JOIN pg_namespace AS m ON m.oid = o.relnamespace
        WHERE o.relname = c.relname AND o.relkind NOT IN ('i', 'I') AND array_position(path, m.nspname::text) < place)
    FROM (SELECT %s::text[], %s::text) AS given(path, ours),
         pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace,
         LATERAL (SELECT array_position(path, n.nspname::text)) AS along(place)
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND obj_description(n.oid, 'pg_namespace') IS DISTINCT FROM ours
      AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    ORDER BY 1, 2
"""
COLUMNS = """
    SELECT a.attnum::int, a.attname, a.atttypid::bigint, a.atttypmod, a.attnotnull,
           format_type(a.atttypid, a.atttypmod), l.collisdeterministic IS NOT FALSE,
           CASE WHEN l.collname <> 'default' THEN quote_ident(ln.nspname) || '.' || quote_ident(l.collname) ELSE '' END,
           CASE a.attgenerated WHEN 'v' THEN pg_get_expr(d.adbin, d.adrelid) ELSE '' END
    FROM pg_attribute AS a
    LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
    LEFT JOIN pg_namespace AS ln ON ln.oid = l.collnamespace
    LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
KEY = """
    SELECT a.attname FROM pg_index AS i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_attribute AS a ON a.attnum = k.attnum
    WHERE i.indrelid = %s AND a.attrelid = i.indrelid AND i.indisprimary AND k.place <= i.indnkeyatts
    ORDER BY k.place
"""
TYPES = """
    SELECT t.oid::bigint, format_type(t.oid, NULL), t.typtype::text, t.typbasetype::bigint, t.typtypmod,
           CASE WHEN t.typcategory = 'A' THEN t.typelem::bigint ELSE 0 END, n.nspname = 'pg_catalog', t.typname,
           format_type(t.typbasetype, t.typtypmod)
    FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace WHERE t.oid = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Detail:
    """A column with what the engine needs to know of it beyond SourceColumn."""

    number: int
    column: SourceColumn
    carrier: Carrier
    stored: str
    """The type that delta tables give it: that of the column, or of the domain's base, with its collation."""
    expression: str
    """Of a virtual generated column; triggers have to compute it."""


@dataclass(frozen=True, slots=True)
class Described:
    """A table as it is now."""

    oid: int
    schema: str
    relation: str
    kind: str
    details: tuple[Detail, ...]
    table: SourceTable


def find(connection: Connection, path: Sequence[str], name: str) -> tuple[int, str, str, str]:
    """The relation of that name: oid, kind, schema, name. A name as it stands comes before the same in lower case."""
    parts = split(name)
    if len(parts) > 2:
        raise SourceTableUnknown(f"{name} has more parts than a schema and a table")
    schemas = [parts[0], parts[0].lower()] if len(parts) == 2 else list(path)
    row = connection.execute(FIND, [schemas, parts[-1]]).fetchone()
    if row is None:
        raise SourceTableUnknown(f"there is no table {name}")
    return row


def called(connection: Connection, path: Sequence[str], schema: str, relation: str) -> str:
    """The shortest name that finds the table."""
    alone = joined(relation)
    if schema in path:
        first = connection.execute(FIND, [list(path), relation]).fetchone()
        if first is not None and first[2:] == (schema, relation):
            return alone
    return joined(schema, relation)


def describe(connection: Connection, path: Sequence[str], name: str) -> Described:
    """The table of that name; raises if it is none, or has a column that cannot be carried."""
    oid, kind, schema, relation = find(connection, path, name)
    if kind not in ("r", "p"):
        raise CannotCapture(f"{name} is {KINDS.get(kind, 'no table')}, and only tables are captured")
    canonical = called(connection, path, schema, relation)
    details = details_of(connection, oid, canonical)
    key = tuple(row[0] for row in connection.execute(KEY, [oid]))
    return Described(
        oid,
        schema,
        relation,
        kind,
        details,
        SourceTable(canonical, tuple(d.column for d in details), key, identity(oid, (d.number for d in details))),
    )


def identity(oid: int, numbers: Iterable[int]) -> str:
    """The table's own number, and its columns': a column dropped and added again is another one."""
    return f"{oid}:{'.'.join(str(number) for number in numbers)}"


def oid_of(table: SourceTable) -> int:
    return int(table.identity.partition(":")[0])


def details_of(connection: Connection, oid: int, name: str) -> tuple[Detail, ...]:
    rows = connection.execute(COLUMNS, [oid]).fetchall()
    types = Types(connection, {row[2] for row in rows})
    details = []
    for number, column, type_oid, modifier, required, text, deterministic, collation, expression in rows:
        type_ = types.of(type_oid, modifier, text, deterministic)
        how = carried(name, column, text, type_)
        described = SourceColumn(column, text, how.spark, not required)
        stored = f"{bottom(type_).text} COLLATE {collation}" if collation else bottom(type_).text
        details.append(Detail(number, described, how, stored, expression))
    return tuple(details)


def carried(table: str, column: str, text: str, type_: SourceType) -> Carrier:
    try:
        return carrier(type_)
    except TypeNotCarried as refusal:
        raise TypeNotCarried(f"{table}.{column} is {text}: {refusal.what}", help=refusal.help) from None


def bottom(type_: SourceType) -> SourceType:
    """What a domain is made of."""
    return type_ if type_.base is None else bottom(type_.base)


class Types:
    """Types by oid, with the types that they are made of."""

    def __init__(self, connection: Connection, wanted: Iterable[int]) -> None:
        self.rows: dict[int, tuple[Any, ...]] = {}
        missing = set(wanted)
        while missing:
            found = connection.execute(TYPES, [list(missing)]).fetchall()
            self.rows |= {row[0]: row for row in found}
            missing = {part for row in found for part in (row[3], row[5]) if part} - self.rows.keys()

    def of(self, oid: int, modifier: int, text: str, deterministic: bool = True) -> SourceType:
        _, name, kind, base, base_modifier, element, built_in, plain, base_text = self.rows[oid]
        return SourceType(
            name if built_in or kind in "de" else plain if plain == "citext" else f"{name}, which is not built in",
            kind,
            text,
            modifier,
            self.of(base, base_modifier, base_text) if base else None,
            self.of(element, modifier, self.rows[element][1]) if element else None,
            deterministic,
        )


def tables(connection: Connection, path: Sequence[str]) -> list[str]:
    """The tables that could be captured: not those that capture has made, for whichever warehouse."""
    rows = connection.execute(ALL, [list(path), OUR_SCHEMA]).fetchall()
    return [joined(name) if alone else joined(schema, name) for schema, name, alone in rows]
