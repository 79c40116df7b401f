"""Capture is installed and removed, table by table: each has all of its triggers or none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial

from matview.errors import PrivilegeMissing, SourceDrifted
from matview.sources.engine import Problem, SourceTable
from matview.sources.postgres.connect import Connection, Connections
from matview.sources.postgres.describe import Described, Detail, describe, oid_of
from matview.sources.postgres.drift import hindrances
from matview.sources.postgres.facts import Facts, facts_of, recorded
from matview.sources.postgres.layout import (
    OUR_SCHEMA,
    ROW,
    SHARED,
    Column,
    Layout,
    Member,
    foundation,
    literal,
    made_schema,
    quote,
    unquoted,
)
from matview.sources.postgres.patience import Patience

ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(6386281, hashtext(%s))"
"""Two installations at once would meet in the schema."""


def check_before(connection: Connection, schema: str, tables: Sequence[SourceTable]) -> list[Problem]:
    """What stands against capture of these tables."""
    role, database, may_create, present, usable, standby = (
        connection.execute(
            "SELECT quote_ident(current_user), quote_ident(current_database()), "
            "has_database_privilege(current_database(), 'CREATE'), n.oid IS NOT NULL, "
            "coalesce(has_schema_privilege(n.oid, 'CREATE'), true), pg_is_in_recovery() "
            "FROM (VALUES (1)) AS one LEFT JOIN pg_namespace AS n ON n.nspname = %s",
            [unquoted(schema)],
        ).fetchone()
        or ()
    )
    problems = []
    if standby:
        problems.append(wide("the source is a standby, which takes no triggers", "name the primary server"))
    if not present and not may_create:
        mend = f"GRANT CREATE ON DATABASE {database} TO {role}"
        problems.append(wide(f"the role may not make the schema {schema}", mend))
    if present and not usable:
        mend = f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}"
        problems.append(wide(f"the role may not make tables in the schema {schema}", mend))
    now = facts_of(connection, schema, map(oid_of, tables))
    for table in tables:
        problems.extend(hindrances(table, now.get(oid_of(table)), role))
    return problems


def wide(what: str, help: str) -> Problem:
    """A problem of the whole source."""
    return Problem(PrivilegeMissing(what, help=help))


def install(connections: Connections, patience: Patience, tables: Sequence[SourceTable]) -> None:
    """All tables or, if one fails, none of those that were not captured before."""
    schema = connections.schema
    with connections.borrow() as connection:
        for problem in check_before(connection, schema, tables):
            raise problem.error
        captured = recorded(connection, schema)
    wanted = [table for table in tables if oid_of(table) not in captured]
    try:
        patience.briefly(connections, schema, [], partial(make_foundation, schema))
        for table in wanted:
            patience.briefly(
                connections, table.name, [oid_of(table)], partial(install_one, schema, connections.path, table)
            )
    except BaseException:
        remove(connections, patience, wanted)
        raise


def make_foundation(schema: str, connection: Connection) -> None:
    connection.execute(ONE_AT_A_TIME, [schema])
    present = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [unquoted(schema)]).fetchone()
    for statement in (*(() if present else made_schema(schema)), *foundation(schema)):
        connection.execute(statement)


def install_one(schema: str, path: Sequence[str], table: SourceTable, connection: Connection) -> None:
    """The delta tables first, the lock on the table last: writers wait for the making of its triggers only."""
    connection.execute(ONE_AT_A_TIME, [schema])
    if oid_of(table) in recorded(connection, schema):
        return
    described = describe(connection, path, table.name)
    if described.table.identity != table.identity:
        raise SourceDrifted(f"{table.name} is another table now", help="run it again")
    facts = facts_of(connection, schema, [described.oid])[described.oid]
    layout = layout_of(schema, described, facts)
    for statement in (*layout.tables(), *layout.functions()):
        connection.execute(statement)
    name = f"{quote(described.schema)}.{quote(described.relation)}"
    connection.execute(f"LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE")
    for member in layout.members:
        (shape,) = connection.execute(f"SELECT {layout.shape(str(member.oid))}").fetchone() or ("",)
        for statement in layout.triggers(replace(member, shape=shape)):
            connection.execute(statement)
    facts = unchanged(connection, schema, described, describe(connection, path, table.name), facts)
    carriers = {detail.column.name: asdict(detail.carrier) for detail in described.details}
    values = ", ".join(literal(text) for text in (name, json.dumps(carriers), json.dumps(facts)))
    connection.execute(
        f"INSERT INTO {schema}.captured (relation, name, columns, facts) VALUES ({described.oid}, {values})"
    )


def unchanged(connection: Connection, schema: str, then: Described, now: Described, facts: Facts) -> Facts:
    """The facts under the lock; what has changed before it was had would not be captured."""
    found = facts_of(connection, schema, [now.oid])[now.oid]
    if then != now or facts["members"].keys() != found["members"].keys():
        raise SourceDrifted(f"{now.table.name} was changed just now", help="run it again")
    return found


def layout_of(schema: str, described: Described, facts: Facts) -> Layout:
    members = (
        Member(int(oid), member["name"], member["kind"] != "p") for oid, member in sorted(facts["members"].items())
    )
    return Layout(schema, described.oid, tuple(map(delta_column, described.details)), tuple(members))


def delta_column(detail: Detail) -> Column:
    value = f"({detail.expression})" if detail.expression else f"{ROW}.{quote(detail.column.name)}"
    return Column(detail.column.name, detail.stored, value)


# remove ---------------------------------------------------------------------------------------------------------------


def remove(connections: Connections, patience: Patience, tables: Sequence[SourceTable]) -> None:
    """The functions go, and with them the triggers, whoever owns the tables by now; then the delta tables; with the
    last table, the schema."""
    schema = connections.schema
    with connections.borrow() as connection:
        captured = recorded(connection, schema)
    for table in tables:
        if oid_of(table) in captured:
            patience.briefly(connections, table.name, [oid_of(table)], partial(remove_one, schema, table))
    patience.briefly(connections, schema, [], partial(remove_foundation, schema))


FUNCTIONS = """
    SELECT quote_ident(n.nspname) || '.' || quote_ident(p.proname) FROM pg_proc AS p
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = %s AND p.proname ~ ('^(insert|update|delete|truncated?|truncate_[0-9]+)_' || %s::text || '$')
"""


def remove_one(schema: str, table: SourceTable, connection: Connection) -> None:
    connection.execute(ONE_AT_A_TIME, [schema])
    oid = oid_of(table)
    for (function,) in connection.execute(FUNCTIONS, [unquoted(schema), oid]).fetchall():
        connection.execute(f"DROP FUNCTION IF EXISTS {function}() CASCADE")
    connection.execute(f"DROP TABLE IF EXISTS {schema}.added_{oid}, {schema}.deleted_{oid}")
    connection.execute(f"DELETE FROM {schema}.captured WHERE relation = {oid}")
    connection.execute(f"DELETE FROM {schema}.bypassed WHERE relation = {oid}")


def remove_foundation(schema: str, connection: Connection) -> None:
    """If no table is captured any more. A schema that others have made, or put something into, stays."""
    connection.execute(ONE_AT_A_TIME, [schema])
    if connection.execute("SELECT to_regclass(%s)", [f"{schema}.captured"]).fetchone() == (None,):
        return
    if recorded(connection, schema):
        return
    for kind in SHARED:
        connection.execute(f"DROP {kind.format(schema)}")
    if connection.execute(EMPTY, [unquoted(schema), OUR_SCHEMA]).fetchone():
        connection.execute(f"DROP SCHEMA {schema}")


EMPTY = """
    SELECT 1 FROM pg_namespace AS n WHERE n.nspname = %s AND obj_description(n.oid, 'pg_namespace') = %s
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid)
"""
