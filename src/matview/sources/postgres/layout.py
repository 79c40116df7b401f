"""What Matview keeps at a PostgreSQL source: a schema with a registry, and per table two delta tables and functions.

    matview.captured            one row per captured table, with the facts that drift is noticed by
    matview.bypassed            a row when a change could not be recorded: never silently
    matview.truncated           a row while TRUNCATE is under way
    matview.serial              orders statements over all tables
    matview.added_<oid>         ▵R: the table's columns, then the labels
    matview.deleted_<oid>       ▿R

Triggers are per statement, over transition tables, and fire in every session (ENABLE ALWAYS). Their functions run as
the role that captures, so that writers need no privilege here; they name everything in full, and nobody else may use
them. Before they touch a row they compare the table's shape with the one that it had at installation, which their
triggers carry: rows of other types would be cast, by functions that the table's owner may have written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

TRANSACTION, SERIAL, AT = "__transaction", "__serial", "__at"
LONGEST_NAME = 63
"""Bytes of a name; PostgreSQL cuts off what is more."""


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def unquoted(name: str) -> str:
    """The name that `quote` was given."""
    return name[1:-1].replace('""', '"')


def literal(text: str) -> str:
    """A string constant; `E''` where there is a backslash, so that no setting changes what it means."""
    escaped = text.replace("'", "''")
    return "E'" + escaped.replace("\\", "\\\\") + "'" if "\\" in text else f"'{escaped}'"


def trigger_name(schema: str, operation: str) -> str:
    """In the order of names they come last, after those that may still change the table. Two warehouses on one table
    have triggers side by side, so the schema is part of it, or a digest of one that is too long."""
    name = f"~matview_{operation}_{schema}"
    digest = sha256(schema.encode()).hexdigest()[:32]
    return name if len(name.encode()) <= LONGEST_NAME else f"~matview_{operation}_{digest}"


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
    shape: str = ""
    """What `Layout.shape` gave at installation."""


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
        """Labels come first, where no gap is left before them, and say nothing of nulls, which would be looked for."""
        columns = ", ".join(f"{quote(c.name)} {c.type}" for c in self.columns)
        labels = f"{TRANSACTION} bigint, {SERIAL} bigint, {AT} timestamptz"
        return [f"CREATE TABLE {table} ({labels}, {columns}) WITH {VACUUM}" for table in (self.added, self.deleted)]

    def functions(self) -> list[str]:
        inserted = self.record(self.added, "new_rows")
        removed = self.record(self.deleted, "old_rows")
        return [
            self.function("insert", inserted),
            self.function("update", f"{removed} {inserted}"),
            self.function("delete", removed),
            self.function("truncate", truncation(self), "SET row_security = off"),
            self.function("truncated", end_of_truncation(self)),
        ]

    def record(self, delta: str, rows: str) -> str:
        """The rows of a relation go to a delta table."""
        return f"{self.recording(delta, self.next_serial)} {rows} AS {ROW};"

    def recording(self, delta: str, serial: str) -> str:
        """The statement as far as FROM; the labels are the same for all of its rows."""
        names = ", ".join(quote(c.name) for c in self.columns)
        values = ", ".join(c.value for c in self.columns)
        return (
            f"INSERT INTO {delta} ({names}, {TRANSACTION}, {SERIAL}, {AT}) SELECT {values}, "
            f"(SELECT {THIS_TRANSACTION}), (SELECT {serial}), (SELECT pg_catalog.clock_timestamp()) FROM"
        )

    @property
    def next_serial(self) -> str:
        return f"pg_catalog.nextval({literal(self.schema + '.serial')}::pg_catalog.regclass)"

    def shape(self, relation: str) -> str:
        """SQL for the places, types and names of a relation's columns, and for the tables that write through it."""
        parents = ", ".join(str(oid) for oid in sorted({self.oid, *(m.oid for m in self.members if not m.has_rows)}))
        return (
            "(SELECT pg_catalog.md5(pg_catalog.concat(pg_catalog.string_agg(pg_catalog.concat(a.attnum, ' ', "
            "a.atttypid, ' ', a.attname), ',' ORDER BY a.attnum), (SELECT pg_catalog.sum(pg_catalog.hashoidextended("
            f"i.inhrelid, 0)) FROM pg_catalog.pg_inherits AS i WHERE i.inhparent IN ({parents})))) "
            f"FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = {relation} AND a.attnum > 0 AND NOT a.attisdropped)"
        )

    def name_of(self, operation: str) -> str:
        return f"{self.schema}.{operation}_{self.oid}"

    def function(self, operation: str, body: str, settings: str = "") -> str:
        """A write of the source's users never fails because of capture: what cannot be recorded is noted instead.
        Nothing of the body is planned before the shape was found to be right."""
        text = (
            f"#variable_conflict use_column\nBEGIN IF {self.shape('TG_RELID')} = TG_ARGV[0] THEN {body} ELSE "
            f"{self.note(literal(ANOTHER_SHAPE))} END IF; RETURN NULL; "
            f"EXCEPTION WHEN OTHERS THEN {self.note('SQLERRM')} RETURN NULL; END"
        )
        return (
            f"CREATE FUNCTION {self.name_of(operation)}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = pg_catalog, pg_temp {settings} AS {literal(text)}; "
            f"REVOKE ALL ON FUNCTION {self.name_of(operation)}() FROM PUBLIC"
        )

    def note(self, reason: str) -> str:
        return f"INSERT INTO {self.schema}.bypassed (relation, operation, reason) VALUES ({self.oid}, TG_OP, {reason});"

    def triggers(self, member: Member) -> list[str]:
        made = [
            self.trigger(member, "insert", "AFTER INSERT", "REFERENCING NEW TABLE AS new_rows"),
            self.trigger(member, "update", "AFTER UPDATE", "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows"),
            self.trigger(member, "delete", "AFTER DELETE", "REFERENCING OLD TABLE AS old_rows"),
        ]
        if member.has_rows:
            made.append(self.trigger(member, "truncate", "BEFORE TRUNCATE", ""))
            made.append(self.trigger(member, "truncated", "AFTER TRUNCATE", ""))
        return made

    def trigger(self, member: Member, operation: str, event: str, referencing: str) -> str:
        name = quote(trigger_name(unquoted(self.schema), operation))
        return (
            f"CREATE TRIGGER {name} {event} ON {member.name} {referencing} FOR EACH STATEMENT "
            f"EXECUTE FUNCTION {self.name_of(operation)}({literal(member.shape)}); "
            f"ALTER TABLE {member.name} ENABLE ALWAYS TRIGGER {name}"
        )


def truncation(layout: Layout) -> str:
    """All rows are deleted, whatever the table is called by now. TRUNCATE also takes those that a transaction with an
    older snapshot does not see."""
    truncated = f"{layout.schema}.truncated"
    serial = f"t.serial FROM {truncated} AS t WHERE {OF_THIS_TRANSACTION} AND t.member = $1"
    recording = literal(f"{layout.recording(layout.deleted, serial)} ONLY ")
    return (
        f"INSERT INTO {truncated} (transaction, member, serial) "
        f"VALUES ({THIS_TRANSACTION}, TG_RELID, {layout.next_serial}); "
        f"EXECUTE pg_catalog.concat({recording}, TG_RELID::pg_catalog.regclass, ' AS {ROW}') USING TG_RELID; "
        "IF pg_catalog.current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN "
        f"{layout.note(literal('TRUNCATE in a transaction with a snapshot of its own'))} END IF;"
    )


def end_of_truncation(layout: Layout) -> str:
    """What was written after the rows had been recorded and before they were gone went with them: other triggers of
    TRUNCATE may write."""
    truncated = f"{layout.schema}.truncated"
    late = " OR ".join(
        f"EXISTS (SELECT FROM {delta} AS d, {truncated} AS t WHERE d.{TRANSACTION} = {THIS_TRANSACTION} "
        f"AND {OF_THIS_TRANSACTION} AND t.member = TG_RELID AND d.{SERIAL} > t.serial "
        f"AND d.{SERIAL} NOT IN (SELECT t.serial FROM {truncated} AS t WHERE {OF_THIS_TRANSACTION}))"
        for delta in (layout.added, layout.deleted)
    )
    return (
        f"IF {late} THEN {layout.note(literal('another trigger of TRUNCATE wrote to the table'))} END IF; "
        f"DELETE FROM {truncated} AS t WHERE {OF_THIS_TRANSACTION} AND t.member = TG_RELID;"
    )


THIS_TRANSACTION = "pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8"
OF_THIS_TRANSACTION = f"t.transaction = {THIS_TRANSACTION}"
ANOTHER_SHAPE = "the table had other columns, other types or other partitions for a while"
ROW = "captured_row"
"""A row of the table or of a transition table, in functions. Columns are qualified by it: one may be called `found`."""


VACUUM = (
    "(autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, "
    "autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 100000, vacuum_truncate = off)"
)
"""Rows come and go: their space is reclaimed often, and rows that merely came are not worth a look. The file keeps its
pages for those that come next: to add pages to it took a quarter of the time that a bulk statement spends here."""


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
        f"CREATE TABLE IF NOT EXISTS {schema}.truncated (transaction bigint NOT NULL, member oid NOT NULL, "
        "serial bigint NOT NULL, PRIMARY KEY (transaction, member))",
    ]


SHARED: Sequence[str] = (
    "TABLE {}.captured",
    "TABLE {}.bypassed",
    "TABLE IF EXISTS {}.truncated",
    "SEQUENCE {}.serial",
)
