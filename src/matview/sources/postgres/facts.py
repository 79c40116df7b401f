"""What the system catalog says of captured tables, as plain data: read at installation, and again in every round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from matview.sources.postgres.connect import Connection
from matview.sources.postgres.types import Carrier

Facts = Mapping[str, Any]

FACTS = """
    SELECT c.oid::bigint, jsonb_build_object(
        'schema', n.nspname,
        'name', c.relname,
        'kind', c.relkind,
        'persistence', c.relpersistence,
        'partition', c.relispartition,
        'inherits', c.relkind = 'r' AND NOT c.relispartition AND EXISTS (
            SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhrelid, i.inhparent)),
        'owner', pg_get_userbyid(c.relowner),
        'owned', pg_has_role(c.relowner, 'USAGE'),
        'readable', has_table_privilege(c.oid, 'SELECT'),
        'policies', row_security_active(c.oid),
        'subscribed', EXISTS (SELECT FROM pg_subscription_rel AS s WHERE s.srrelid = ANY(m.oids)),
        'recording', to_regclass(%(schema)s::text || '.added_' || c.oid) IS NOT NULL
            AND to_regclass(%(schema)s::text || '.deleted_' || c.oid) IS NOT NULL,
        'columns', (
            SELECT jsonb_agg(jsonb_build_object('number', a.attnum, 'name', a.attname, 'type',
                format_type(a.atttypid, a.atttypmod), 'generated', CASE WHEN a.attgenerated <> '' THEN
                pg_get_expr(d.adbin, d.adrelid) END) ORDER BY a.attnum)
            FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
        'key', coalesce((
            SELECT jsonb_agg(k.attnum ORDER BY k.place)
            FROM pg_index AS i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
            WHERE i.indrelid = c.oid AND i.indisprimary AND k.place <= i.indnkeyatts), '[]'),
        'members', (
            SELECT jsonb_object_agg(o.oid::text, jsonb_build_object(
                'kind', o.relkind, 'file', o.relfilenode, 'columns', (
                SELECT md5(string_agg(a.xmin::text, ',' ORDER BY a.attnum)) FROM pg_attribute AS a
                WHERE a.attrelid = o.oid AND a.attnum > 0), 'written', (
                SELECT jsonb_agg(a.xmin::text ORDER BY a.attnum) FROM pg_attribute AS a
                WHERE a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped), 'attached', (
                SELECT jsonb_agg(i.xmin::text) FROM pg_inherits AS i WHERE i.inhrelid = o.oid), 'name',
                quote_ident(s.nspname) || '.' || quote_ident(o.relname)))
            FROM pg_class AS o JOIN pg_namespace AS s ON s.oid = o.relnamespace WHERE o.oid = ANY(m.oids)),
        'triggers', coalesce((
            SELECT jsonb_object_agg(t.tgrelid::text || '.' || t.tgname, jsonb_build_array(
                t.tgenabled, t.xmin::text, p.oid, md5(p.prosrc)))
            FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
            WHERE t.tgrelid = ANY(m.oids) AND p.pronamespace = to_regnamespace(%(schema)s::text)), '{}'),
        'labels', coalesce((
            WITH RECURSIVE types(oid) AS (
                SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0
                UNION
                SELECT part.oid FROM types, pg_type AS t, LATERAL (VALUES (t.typbasetype), (t.typelem)) AS part(oid)
                WHERE t.oid = types.oid AND part.oid <> 0)
            SELECT jsonb_object_agg(e.oid::text, e.enumlabel) FROM pg_enum AS e
            WHERE e.enumtypid IN (SELECT oid FROM types)), '{}'))
    FROM unnest(%(oids)s::bigint[]) AS wanted(oid)
    JOIN pg_class AS c ON c.oid = wanted.oid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
        SELECT array_agg(u.oid) AS oids FROM (
            SELECT c.oid UNION SELECT p.relid::oid FROM pg_partition_tree(c.oid) AS p WHERE c.relkind = 'p') AS u) AS m
"""


def facts_of(connection: Connection, schema: str, oids: Iterable[int]) -> dict[int, Facts]:
    """The facts of those tables that are there, by oid; in the snapshot of the transaction, if there is one."""
    return dict(connection.execute(FACTS, {"oids": list(oids), "schema": schema}).fetchall())


@dataclass(frozen=True, slots=True)
class Recorded:
    """A row of the registry: how the columns are carried, and the facts at installation."""

    carriers: Mapping[str, Carrier]
    facts: Facts


def recorded(connection: Connection, schema: str) -> dict[int, Recorded]:
    """What is captured, by oid; nothing, if nothing of Matview's is there."""
    if connection.execute("SELECT to_regclass(%s)", [f"{schema}.captured"]).fetchone() == (None,):
        return {}
    rows = connection.execute(f"SELECT relation::bigint, columns, facts FROM {schema}.captured").fetchall()
    return {
        oid: Recorded({name: Carrier(**how) for name, how in columns.items()}, facts) for oid, columns, facts in rows
    }


def bypassed(connection: Connection, schema: str) -> dict[int, str]:
    """Why a change was not recorded, by oid."""
    rows = connection.execute(f"SELECT DISTINCT ON (1) relation::bigint, reason FROM {schema}.bypassed ORDER BY 1, at")
    return dict(rows.fetchall())
