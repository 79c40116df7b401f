"""What Matview keeps at a PostgreSQL source: a schema with a registry, and per table two delta tables and functions.

    matview.captured            one row per captured table, with the facts that drift is noticed by
    matview.bypassed            a row when a change could not be recorded: never silently
    matview.serial              orders statements over all tables
    matview.added_<oid>         ▵R: the table's columns, then the labels
    matview.deleted_<oid>       ▿R

Triggers are per statement, over transition tables, and fire in every session (ENABLE ALWAYS). Their functions run as
the role that captures, so that writers need no privilege here; they name everything in full, and nobody else may use
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TRANSACTION, SERIAL, AT = "__transaction", "__serial", "__at"
TRIGGER = "~matview_"
"""How triggers' names begin: in the order of names they come last, after those that may still change the table."""


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def unquoted(name: str) -> str:
    """The name that `quote` was given."""
    return name[1:-1].replace('""', '"')


def literal(text: str) -> str:
    """A string constant; `E''` where there is a backslash, so that no setting changes what it means."""
    escaped = text.replace("'", "''")
    return "E'" + escaped.replace("\\", "\\\\") + "'" if "\\" in text else f"'{escaped}'"


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the delta tables have it; `value` gives it from a row of the base table or of a transition table."""

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True)
class Member:
    """A table that gets triggers: the captured table itself, or one of its partitions."""

    oid: int
    name: str
    has_rows: bool
    """False for a partitioned table, whose rows are in its partitions."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The objects for one captured table. `schema` is Matview's, quoted."""

    schema: str
    oid: int
    columns: tuple[Column, ...]
    members: tuple[Member, ...]

    @property
    def added(self) -> str:
        return f"{self.schema}.added_{self.oid}"

    @property
    def deleted(self) -> str:
        return f"{self.schema}.deleted_{self.oid}"

    def tables(self) -> list[str]:
        columns = ", ".join(f"{quote(c.name)} {c.type}" for c in self.columns)
        labels = f"{TRANSACTION} bigint NOT NULL, {SERIAL} bigint NOT NULL, {AT} timestamptz NOT NULL"
        return [f"CREATE TABLE {table} ({columns}, {labels}) WITH {VACUUM}" for table in (self.added, self.deleted)]

    def functions(self) -> list[str]:
        inserted = self.record(self.added, "new_rows")
        removed = self.record(self.deleted, "old_rows")
        made = [
            self.function("insert", inserted),
            self.function("update", f"{removed} {inserted}"),
            self.function("delete", removed),
        ]
        return made + [self.function(f"truncate_{m.oid}", truncation(self, m.name)) for m in self.members if m.has_rows]

    def record(self, delta: str, rows: str) -> str:
        """The rows of a relation go to a delta table; the labels are the same for all of a statement."""
        names = ", ".join(quote(c.name) for c in self.columns)
        values = ", ".join(c.value for c in self.columns)
        return (
            f"INSERT INTO {delta} ({names}, {TRANSACTION}, {SERIAL}, {AT}) SELECT {values}, "
            "(SELECT pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8), "
            f"(SELECT pg_catalog.nextval({literal(self.schema + '.serial')}::pg_catalog.regclass)), "
            f"(SELECT pg_catalog.clock_timestamp()) FROM {rows};"
        )

    def name_of(self, operation: str) -> str:
        return f"{self.schema}.{operation}_{self.oid}"

    def function(self, operation: str, body: str) -> str:
        """A write of the source's users never fails because of capture: what cannot be recorded is noted instead."""
        text = (
            f"BEGIN {body} RETURN NULL; EXCEPTION WHEN OTHERS THEN "
            f"INSERT INTO {self.schema}.bypassed (relation, operation, reason) "
            f"VALUES ({self.oid}, TG_OP, SQLERRM); RETURN NULL; END"
        )
        return (
            f"CREATE FUNCTION {self.name_of(operation)}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = pg_catalog, pg_temp AS {literal(text)}; "
            f"REVOKE ALL ON FUNCTION {self.name_of(operation)}() FROM PUBLIC"
        )

    def triggers(self, member: Member) -> list[str]:
        made = [
            self.trigger(member, "insert", "AFTER INSERT", "REFERENCING NEW TABLE AS new_rows"),
            self.trigger(member, "update", "AFTER UPDATE", "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"),
            self.trigger(member, "delete", "AFTER DELETE", "REFERENCING OLD TABLE AS old_rows"),
        ]
        if member.has_rows:
            made.append(self.trigger(member, f"truncate_{member.oid}", "BEFORE TRUNCATE", ""))
        return made

    def trigger(self, member: Member, operation: str, event: str, referencing: str) -> str:
        name = quote(TRIGGER + operation.partition("_")[0])
        return (
            f"CREATE TRIGGER {name} {event} ON {member.name} {referencing} FOR EACH STATEMENT "
            f"EXECUTE FUNCTION {self.name_of(operation)}(); "
            f"ALTER TABLE {member.name} ENABLE ALWAYS TRIGGER {name}"
        )


def truncation(layout: Layout, member: str) -> str:
    """All rows are deleted. TRUNCATE also takes those that a transaction with an older snapshot does not see."""
    return (
        f"{layout.record(layout.deleted, f'ONLY {member}')} "
        "IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed' THEN "
        f"INSERT INTO {layout.schema}.bypassed (relation, operation, reason) VALUES ({layout.oid}, TG_OP, "
        "'TRUNCATE in a transaction with a snapshot of its own'); END IF;"
    )


VACUUM = (
    "(autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, "
    "autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 100000)"
)
"""Rows come and go: their space is reclaimed often, and rows that merely came are not worth a look."""


OUR_SCHEMA = "Matview: changes of captured tables; goes with the last of them"


def made_schema(schema: str) -> list[str]:
    return [f"CREATE SCHEMA {schema}", f"COMMENT ON SCHEMA {schema} IS {literal(OUR_SCHEMA)}"]


def foundation(schema: str) -> list[str]:
    """What all captured tables share; harmless where it is already."""
    return [
        f"CREATE SEQUENCE IF NOT EXISTS {schema}.serial",
        f"CREATE TABLE IF NOT EXISTS {schema}.captured (relation oid PRIMARY KEY, name text NOT NULL, "
        "columns jsonb NOT NULL, facts jsonb NOT NULL)",
        f"CREATE TABLE IF NOT EXISTS {schema}.bypassed (relation oid NOT NULL, operation text NOT NULL, "
        "reason text NOT NULL, at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp())",
    ]


SHARED: Sequence[str] = ("TABLE {}.captured", "TABLE {}.bypassed", "SEQUENCE {}.serial")
