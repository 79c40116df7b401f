"""What stands against capture, and what has happened to it since; users of the source never meet an error of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from tests.sources.postgres.lab import PostgresLab

from matview.errors import CannotCapture, CaptureBypassed, MatviewError, SourceDrifted, TypeNotCarried
from matview.sources import connect
from matview.sources.engine import Source

TREE = (
    "CREATE TABLE r (id int) PARTITION BY RANGE (id)",
    "CREATE TABLE r_low PARTITION OF r FOR VALUES FROM (0) TO (100)",
)


@pytest.fixture
def source(lab: PostgresLab) -> Iterator[Source]:
    source = connect(lab.url)
    yield source
    source.close()


REFUSED: dict[str, tuple[Sequence[str], str, str]] = {
    "view": (["CREATE VIEW r AS SELECT 1 AS id"], "is a view", "captured"),
    "materialized view": (["CREATE MATERIALIZED VIEW r AS SELECT 1 AS id"], "is a materialized view", "captured"),
    "unlogged": (["CREATE UNLOGGED TABLE r (id int)"], "not logged", "SET LOGGED"),
    "partition": (
        [TREE[0].replace(" r ", " q "), TREE[1].replace("r_low", "r").replace("OF r", "OF q")],
        "partition",
        "instead",
    ),
    "parent": (["CREATE TABLE r (id int)", "CREATE TABLE child () INHERITS (r)"], "inheritance", "NO INHERIT"),
    "child": (["CREATE TABLE parent (id int)", "CREATE TABLE r () INHERITS (parent)"], "inheritance", "NO INHERIT"),
    "a reserved name": (["CREATE TABLE r (id int, __at int)"], "reserved", "rename"),
    "names alike": (['CREATE TABLE r (id int, "ID" int)'], "upper and lower case", "rename"),
    "no columns": (["CREATE TABLE r ()"], "no columns", "leave"),
    "too many columns": (
        [f"CREATE TABLE r ({', '.join(f'c{n} bool' for n in range(1598))})"],
        "more than PostgreSQL allows",
        "at most 1597",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured_is_refused_with_what_to_do(lab: PostgresLab, source: Source, name: str) -> None:
    statements, what, mend = REFUSED[name]
    lab.execute(*statements)
    before = lab.objects()
    with pytest.raises(CannotCapture) as refusal:
        source.install(source.describe(["r"]))
    assert what in refusal.value.what
    assert mend in f"{refusal.value.what} {refusal.value.help}"
    assert lab.objects() == before


def test_a_table_that_cannot_be_captured_keeps_others_from_being_installed(lab: PostgresLab, source: Source) -> None:
    lab.execute("CREATE TABLE fine (id int)", "CREATE UNLOGGED TABLE not_fine (id int)")
    before = lab.objects()
    with pytest.raises(CannotCapture):
        source.install(source.describe(["fine", "not_fine"]))
    assert lab.objects() == before


def test_a_foreign_partition_is_refused(lab: PostgresLab, source: Source) -> None:
    lab.execute(
        *TREE,
        "CREATE FOREIGN DATA WRAPPER dummy",
        "CREATE SERVER elsewhere FOREIGN DATA WRAPPER dummy",
        "CREATE FOREIGN TABLE r_far PARTITION OF r FOR VALUES FROM (100) TO (200) SERVER elsewhere",
    )
    (problem,) = source.check(source.describe(["r"]), installed=False)
    assert "foreign" in problem.what
    lab.execute("DROP FOREIGN DATA WRAPPER dummy CASCADE")


DRIFTS: dict[str, tuple[Sequence[str], Sequence[str], str]] = {
    "partition made": (
        TREE,
        ["CREATE TABLE r_high PARTITION OF r FOR VALUES FROM (100) TO (200)"],
        "r_high was attached",
    ),
    "partition attached": (
        TREE,
        [
            "CREATE TABLE r_high AS SELECT 100 AS id",
            "ALTER TABLE r ATTACH PARTITION r_high FOR VALUES FROM (100) TO (200)",
        ],
        "r_high was attached",
    ),
    "partition detached": (TREE, ["ALTER TABLE r DETACH PARTITION r_low"], "r_low was detached"),
    "partition dropped": (TREE, ["DROP TABLE r_low"], "r_low was detached or dropped"),
    "trigger of a partition disabled": (
        TREE,
        ["ALTER TABLE r_low DISABLE TRIGGER USER", "INSERT INTO r_low VALUES (1)"],
        "is disabled",
    ),
    "partition written anew": (
        [TREE[0].replace("id int", "id int, v int"), TREE[1], "INSERT INTO r VALUES (1, 1)"],
        ["ALTER TABLE r ALTER COLUMN v TYPE int USING v + 1"],
        "anew",
    ),
    "enum value renamed": (
        ["CREATE TYPE size AS ENUM ('small', 'big')", "CREATE TABLE r (id int, s size[])"],
        ["ALTER TYPE size RENAME VALUE 'big' TO 'large'"],
        "big is called large",
    ),
    "computed otherwise": (
        ["CREATE TABLE r (id int, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL)"],
        ["ALTER TABLE r ALTER COLUMN twice SET EXPRESSION AS (id * 3)"],
        "computed in another way",
    ),
    "function replaced": (
        ["CREATE TABLE r (id int)"],
        [
            "DO $$BEGIN EXECUTE (SELECT replace(pg_get_functiondef(p.oid), 'BEGIN', 'BEGIN RETURN NULL;') "
            "FROM pg_proc AS p JOIN pg_trigger AS t ON t.tgfoid = p.oid WHERE tgrelid = 'r'::regclass "
            r"AND tgname LIKE '~matview\_insert%'); END$$"
        ],
        "changed",
    ),
    "all dropped": (
        ["CREATE TABLE r (id int)"],
        [
            "DO $$BEGIN EXECUTE (SELECT 'DROP SCHEMA ' || quote_ident(n.nspname) || ' CASCADE' FROM pg_trigger AS t "
            "JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace "
            "WHERE tgrelid = 'r'::regclass LIMIT 1); END$$"
        ],
        "not captured at the source",
    ),
}
HARMLESS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "VACUUM FULL": (["CREATE TABLE r (id int PRIMARY KEY)"], ["INSERT INTO r VALUES (1)", "VACUUM FULL r"]),
    "CLUSTER": (["CREATE TABLE r (id int PRIMARY KEY)"], ["CLUSTER r USING r_pkey"]),
    "TRUNCATE": (["CREATE TABLE r (id int PRIMARY KEY)"], ["TRUNCATE r"]),
    "statistics": (
        ["CREATE TABLE r (id int, v int)"],
        ["ALTER TABLE r ALTER COLUMN id SET STATISTICS 500", "ANALYZE r"],
    ),
    "default": (["CREATE TABLE r (id int, v int)"], ["ALTER TABLE r ALTER COLUMN id SET DEFAULT 7"]),
    "index": (["CREATE TABLE r (id int)"], ["CREATE INDEX ON r (id)"]),
    "a key where there was none": (["CREATE TABLE r (id int, v int)"], ["ALTER TABLE r ADD PRIMARY KEY (id)"]),
    "enum value added": (
        ["CREATE TYPE size AS ENUM ('small')", "CREATE TABLE r (s size)"],
        ["ALTER TYPE size ADD VALUE 'big'", "INSERT INTO r VALUES ('big')"],
    ),
    "partition renamed": (TREE, ["ALTER TABLE r_low RENAME TO r_lowest", "INSERT INTO r VALUES (1)"]),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_drift_is_noticed_and_named(lab: PostgresLab, source: Source, name: str) -> None:
    before, statements, what = DRIFTS[name]
    lab.execute(*before)
    tables = source.describe(["r"])
    source.install(tables)
    assert source.check(tables, installed=True) == []
    lab.execute(*statements)
    problems = source.check(tables, installed=True)
    assert any(what in problem.what for problem in problems), problems
    with pytest.raises((SourceDrifted, CaptureBypassed), match=r"\br\b"):
        source.capture(tables)
    source.remove(tables)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_changes_no_rows_is_no_drift(lab: PostgresLab, source: Source, name: str) -> None:
    before, statements = HARMLESS[name]
    lab.execute(*before)
    tables = source.describe(["r"])
    source.install(tables)
    lab.execute(*statements)
    assert source.check(tables, installed=True) == []
    rows = len(lab.asked("SELECT * FROM r"))
    with source.first_state(tables) as first:
        assert sum(b.num_rows for part in first.slices(tables[0], 10) for b in first.read(part)) == rows


BREAKING = {
    "column dropped": "ALTER TABLE r DROP COLUMN city",
    "column renamed": "ALTER TABLE r RENAME COLUMN city TO town",
    "column retyped": "ALTER TABLE r ALTER COLUMN id TYPE text",
    "column added": "ALTER TABLE r ADD COLUMN extra int DEFAULT 1",
    "delta table dropped": "DO $$BEGIN EXECUTE (SELECT 'DROP TABLE ' || oid::regclass FROM pg_class "
    "WHERE relname = 'added_' || 'r'::regclass::oid); END$$",
}


@pytest.mark.parametrize("name", BREAKING)
def test_users_go_on_writing_whatever_they_do_to_the_table(lab: PostgresLab, source: Source, name: str) -> None:
    lab.execute("CREATE TABLE r (id int, city text)")
    tables = source.describe(["r"])
    source.install(tables)
    writer = lab.writer()
    writer.execute("INSERT INTO r VALUES (0, 'prepared before')")
    lab.execute(BREAKING[name])
    for _ in range(2):
        writer.execute("INSERT INTO r VALUES (1)")
        writer.execute("UPDATE r SET id = id")
        writer.execute("DELETE FROM r")
    writer.close()
    assert source.check(tables, installed=True)
    with pytest.raises(MatviewError):
        source.capture(tables)


BAD = {
    "numeric(5,2)": "'NaN'",
    "date": "'infinity'",
    "timestamp": "'-infinity'",
    "timestamptz": "'10000-01-01 00:00:00+00'",
    "int[]": "'{{1,2},{3,4}}'",
    "date[]": "'{2024-01-01,infinity}'",
    "numeric(5,2)[]": "'{NaN}'",
}


@pytest.mark.parametrize("type_", BAD)
def test_a_value_that_no_spark_type_holds_is_named(lab: PostgresLab, source: Source, type_: str) -> None:
    lab.execute(f'CREATE TABLE r (a int, "B" text, v {type_}, PRIMARY KEY (a, "B"))')
    tables = source.describe(["r"])
    source.install(tables)
    lab.execute(f"INSERT INTO r VALUES (7, 'seven', {BAD[type_]})", "INSERT INTO r VALUES (8, 'eight', NULL)")
    with pytest.raises(TypeNotCarried, match=r"r\.v .* \(7, seven\)"):
        source.capture(tables)
    with source.first_state(tables) as first, pytest.raises(TypeNotCarried, match=r"r\.v .* \(7, seven\)"):
        list(first.read(first.slices(tables[0], 100)[0]))
    lab.execute("DELETE FROM r WHERE a = 7")
    with pytest.raises(TypeNotCarried):
        source.capture(tables)
    lab.execute("INSERT INTO r VALUES (9, 'nine', NULL)")
    with source.first_state(tables) as first:
        source.acknowledge(tables, first.taken)
    lab.execute("INSERT INTO r VALUES (10, 'ten', NULL)")
    assert source.capture(tables).rows == 1


def test_dates_before_the_first_year_are_named(lab: PostgresLab, source: Source) -> None:
    lab.execute("CREATE TABLE r (v date)")
    tables = source.describe(["r"])
    source.install(tables)
    lab.execute("INSERT INTO r VALUES ('0044-03-15 BC')")
    with pytest.raises(TypeNotCarried, match="0044-03-15 BC"):
        source.capture(tables)


def test_a_table_of_a_subscription_is_refused(lab: PostgresLab, source: Source) -> None:
    """What a subscription writes fires no statement triggers."""
    lab.execute("CREATE TABLE r (id int)")
    lab.execute(
        "CREATE SUBSCRIPTION nothing CONNECTION 'dbname=none' PUBLICATION p WITH (connect = false, slot_name = NONE)",
        "SET allow_system_table_mods = on",
        "INSERT INTO pg_subscription_rel SELECT s.oid, 'r'::regclass, 'r', NULL FROM pg_subscription AS s",
    )
    found = source.check(source.describe(["r"]), installed=False)
    lab.execute("DROP SUBSCRIPTION nothing")
    assert [problem.what for problem in found if "subscription" in problem.what]


def test_a_schema_may_have_any_name(lab: PostgresLab) -> None:
    source = connect(f"{lab.users_url}&matview_schema=100%25%25s%28x")
    lab.execute("CREATE TABLE r (id int)")
    before = lab.objects()
    tables = source.describe(["r"])
    source.install(tables)
    lab.execute("INSERT INTO r VALUES (1)", "TRUNCATE r")
    captured = source.capture(tables)
    assert captured.rows == 2
    source.acknowledge(tables, captured.taken)
    source.remove(tables)
    source.close()
    assert lab.objects() == before
