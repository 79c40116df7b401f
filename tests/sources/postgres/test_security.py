"""The role that captures needs little, says what is missing, and gives nobody more than they had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
import sqlglot
from sqlglot import exp
from tests.servers import PostgresServer
from tests.sources.documented import SCHEMA, privileges
from tests.sources.lab import bag, net
from tests.sources.postgres.lab import PostgresLab

from matview.errors import BadSourceUrl, CaptureBypassed, PrivilegeMissing, SourceDrifted, SourceUnreachable
from matview.sources import connect

ROLES = ("shop_owner", "shop_writer", "shop_capture")


@dataclass
class Shop:
    """A database whose table belongs to one role, is written by another, and is to be captured by a third."""

    server: PostgresServer
    database: str

    def url(self, role: str) -> str:
        return self.server.url(self.database, role)

    def run(self, role: str, *statements: str) -> None:
        with psycopg.connect(self.url(role), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@pytest.fixture
def shop(postgres_lab_server: PostgresServer) -> Iterator[Shop]:
    with postgres_lab_server.administrator() as connection:
        for role in ROLES:
            connection.execute(f"CREATE ROLE {role} LOGIN")
    url = postgres_lab_server.new_database()
    made = Shop(postgres_lab_server, url.partition("?")[0].rpartition("/")[2])
    made.run(
        "postgres",
        "CREATE SCHEMA sales AUTHORIZATION shop_owner",
        "GRANT USAGE ON SCHEMA sales TO shop_writer, shop_capture",
    )
    made.run(
        "shop_owner",
        "CREATE TABLE sales.orders (id int PRIMARY KEY, city text)",
        "GRANT INSERT, UPDATE, DELETE, SELECT ON sales.orders TO shop_writer",
    )
    yield made
    with postgres_lab_server.administrator() as connection:
        connection.execute(f"DROP DATABASE {made.database} WITH (FORCE)")
        for role in ROLES:
            connection.execute(f"DROP ROLE {role}")


LEAST = ("GRANT CREATE ON DATABASE {database} TO shop_capture", "GRANT shop_owner TO shop_capture")


def test_what_is_missing_is_told_with_the_statement_that_grants_it(shop: Shop) -> None:
    source = connect(shop.url("shop_capture"))
    tables = source.describe(["sales.orders"])
    problems = source.check(tables, installed=False)
    assert len(problems) == 2
    with pytest.raises(PrivilegeMissing):
        source.install(tables)
    shop.run("postgres", *(problem.help for problem in problems))
    assert source.check(tables, installed=False) == []
    source.install(tables)
    source.remove(tables)
    source.close()


@pytest.mark.conforms("M1")
@pytest.mark.parametrize("made", [True, False])
def test_the_least_privileges_are_enough(shop: Shop, *, made: bool) -> None:
    """Those that the page shows; or that to make a schema in place of one that was made."""
    shown = privileges("PostgreSQL", shop=shop.database, capture="shop_capture", sales_owner="shop_owner")
    assert len(shown) == 4 and all(SCHEMA in statement for statement in shown[:2])
    may_create = f"GRANT CREATE ON DATABASE {shop.database} TO shop_capture"
    shop.run("postgres", "REVOKE USAGE ON SCHEMA sales FROM shop_capture")
    shop.run("postgres", *(shown if made else [may_create, *shown[2:]]))
    url = shop.url("shop_capture")
    source = connect(f"{url}{'&' if '?' in url else '?'}matview_schema={SCHEMA}")
    tables = source.describe(["sales.orders"])
    source.install(tables)
    shop.run("shop_writer", "INSERT INTO sales.orders VALUES (1, 'Oslo')")
    with source.first_state(tables) as first:
        assert sum(b.num_rows for part in first.slices(tables[0], 9) for b in first.read(part)) == 1
    captured = source.capture(tables)
    assert captured.rows == 1
    assert source.waiting(tables).rows == 1
    shop.run("shop_writer", "DELETE FROM sales.orders")
    query = sqlglot.parse_one("SELECT id, city FROM `sales.orders`", dialect="spark")
    assert isinstance(query, exp.Query)
    assert list(bag(source.evaluate(query, tables, captured.taken, {}))) == [(1, "Oslo")]
    source.acknowledge(tables, captured.taken)
    assert source.check(tables, installed=True) == []
    source.remove(tables)
    source.close()


def test_a_schema_made_for_it_will_do_and_stays(shop: Shop) -> None:
    shop.run("postgres", LEAST[1], "CREATE SCHEMA matview", "GRANT USAGE, CREATE ON SCHEMA matview TO shop_capture")
    source = connect(shop.url("shop_capture"))
    tables = source.describe(["sales.orders"])
    assert source.check(tables, installed=False) == []
    source.install(tables)
    shop.run("shop_writer", "INSERT INTO sales.orders VALUES (1, 'Oslo')")
    assert source.capture(tables).rows == 1
    source.remove(tables)
    source.close()
    shop.run("postgres", "DROP SCHEMA matview")


FORBIDDEN = {
    "see changes": "SELECT * FROM matview.{added}",
    "make changes up": "INSERT INTO matview.{added} DEFAULT VALUES",
    "delete changes": "DELETE FROM matview.{added}",
    "see what is captured": "SELECT * FROM matview.captured",
    "hide a bypass": "DELETE FROM matview.bypassed",
    "move the serial": "SELECT setval('matview.serial', 1)",
    "use the functions": "CREATE TEMPORARY TABLE t (id int, city text); CREATE TRIGGER x AFTER INSERT ON t "
    "REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION matview.{insert}()",
}


def test_capture_gives_writers_nothing(shop: Shop) -> None:
    shop.run("postgres", *(statement.format(database=shop.database) for statement in LEAST))
    source = connect(shop.url("shop_capture"))
    tables = source.describe(["sales.orders"])
    source.install(tables)
    oid = tables[0].identity.partition(":")[0]
    shop.run("shop_writer", "INSERT INTO sales.orders VALUES (1, 'Oslo')", "UPDATE sales.orders SET city = 'Moss'")
    for statement in FORBIDDEN.values():
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            shop.run("shop_writer", statement.format(added=f"added_{oid}", insert=f"insert_{oid}"))
    shop.run("postgres", "GRANT USAGE ON SCHEMA matview TO shop_writer")
    for statement in FORBIDDEN.values():
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            shop.run("shop_writer", statement.format(added=f"added_{oid}", insert=f"insert_{oid}"))
    shop.run("postgres", "REVOKE USAGE ON SCHEMA matview FROM shop_writer")
    assert source.capture(tables).rows == 3
    source.close()


def test_names_in_a_writers_search_path_do_not_mislead_the_triggers(shop: Shop) -> None:
    """A function runs as the role that captures: it must not call what a writer puts in its way."""
    shop.run("postgres", *(statement.format(database=shop.database) for statement in LEAST))
    shop.run("postgres", "CREATE SCHEMA evil AUTHORIZATION shop_writer")
    source = connect(shop.url("shop_capture"))
    tables = source.describe(["sales.orders"])
    source.install(tables)
    shop.run(
        "shop_writer",
        "CREATE FUNCTION evil.nextval(regclass) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END'",
        "CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END'",
        "CREATE FUNCTION evil.never(text, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END'",
        "CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never)",
        "CREATE DOMAIN evil.text AS int",
        "SET search_path = evil, pg_catalog",
        "INSERT INTO sales.orders VALUES (1, 'Oslo')",
    )
    assert source.check(tables, installed=True) == []
    assert source.capture(tables).rows == 1
    source.close()


def test_names_in_the_search_path_do_not_mislead_those_who_read(lab: PostgresLab) -> None:
    """A function that fits better than the built-in one is not called, though its schema is on the path."""
    lab.execute(
        "CREATE FUNCTION array_to_json(int[]) RETURNS json LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END'",
        "CREATE FUNCTION never(numeric, int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END'",
        "CREATE OPERATOR > (LEFTARG = numeric, RIGHTARG = int, FUNCTION = never)",
        "CREATE TABLE r (id int PRIMARY KEY, v int[], w numeric(5,2))",
    )
    source = connect(lab.url)
    tables = source.describe(["r"])
    source.install(tables)
    lab.execute("INSERT INTO r VALUES (1, '{1,2}', 3)")
    captured = source.capture(tables)
    assert captured.changes["r"]["v"].to_pylist() == [[1, 2]]
    lab.execute("DELETE FROM r")
    query = sqlglot.parse_one("SELECT v FROM r WHERE w > 2", dialect="spark")
    assert isinstance(query, exp.Query)
    assert list(bag(source.evaluate(query, tables, captured.taken, {}))) == [((1, 2),)]
    source.close()


STOLEN = (
    "CREATE TYPE sales.mood AS ENUM ('fine')",
    "CREATE TABLE sales.called (by text)",
    "GRANT ALL ON sales.called TO PUBLIC",
    "CREATE FUNCTION sales.evil(sales.mood) RETURNS text LANGUAGE plpgsql AS "
    "'BEGIN INSERT INTO sales.called VALUES (current_user); RETURN ''fine''; END'",
    "CREATE CAST (sales.mood AS text) WITH FUNCTION sales.evil(sales.mood) AS IMPLICIT",
    "CREATE FUNCTION sales.evil_json(sales.mood) RETURNS json LANGUAGE plpgsql AS "
    "'BEGIN INSERT INTO sales.called VALUES (current_user); RETURN ''1''; END'",
    "CREATE CAST (sales.mood AS json) WITH FUNCTION sales.evil_json(sales.mood)",
)
LURES = {
    "another type": [
        "ALTER TABLE sales.orders ALTER COLUMN city TYPE sales.mood USING 'fine'::sales.mood",
        "INSERT INTO sales.orders VALUES (2, 'fine')",
        "UPDATE sales.orders SET city = 'fine'",
        "DELETE FROM sales.orders WHERE id = 2",
        "TRUNCATE sales.orders",
    ],
    "a view by its name": [
        "ALTER TABLE sales.orders RENAME TO elsewhere",
        "CREATE VIEW sales.orders AS SELECT 1 AS id, sales.evil('fine') AS city",
        "TRUNCATE sales.elsewhere",
    ],
}


@pytest.mark.parametrize("name", LURES)
def test_the_owner_of_a_table_runs_nothing_as_the_role_that_captures(shop: Shop, name: str) -> None:
    source = connect(shop.url("postgres"))
    tables = source.describe(["sales.orders"])
    source.install(tables)
    shop.run("shop_owner", *STOLEN, "INSERT INTO sales.orders VALUES (1, 'fine')", *LURES[name])
    with pytest.raises((CaptureBypassed, SourceDrifted)):
        source.capture(tables)
    assert called_by(shop) <= {"shop_owner"}
    source.close()


def called_by(shop: Shop) -> set[str]:
    with psycopg.connect(shop.url("postgres")) as connection:
        return {row[0] for row in connection.execute("SELECT by FROM sales.called")}


def test_casts_of_a_types_owner_are_not_run_by_those_who_read(shop: Shop) -> None:
    """First states, rounds and questions read what the type itself prints."""
    shop.run("shop_owner", *STOLEN, "CREATE DOMAIN sales.tone AS sales.mood")
    shop.run("shop_owner", "CREATE TABLE sales.moods (a sales.mood, b sales.mood[], c sales.tone, d sales.tone[])")
    source = connect(shop.url("postgres"))
    tables = source.describe(["sales.moods"])
    source.install(tables)
    shop.run(
        "shop_owner", "INSERT INTO sales.moods VALUES ('fine', '{fine}', 'fine', '{fine}'), (NULL, NULL, NULL, NULL)"
    )
    captured = source.capture(tables)
    full, empty = ("fine", ("fine",), "fine", ("fine",)), (None, None, None, None)
    assert net(captured, table="sales.moods") == {full: 1, empty: 1}
    with source.first_state(tables) as first:
        assert set(bag(b for part in first.slices(tables[0], 9) for b in first.read(part))) == {full, empty}
    query = sqlglot.parse_one("SELECT a, b FROM `sales.moods` WHERE a = 'fine'", dialect="spark")
    assert isinstance(query, exp.Query)
    assert list(bag(source.evaluate(query, tables, captured.taken, {}))) == [full[:2]]
    assert called_by(shop) == set()
    source.close()


def test_row_security_for_a_while_does_not_hide_what_a_truncate_removes(shop: Shop) -> None:
    shop.run("postgres", *(statement.format(database=shop.database) for statement in LEAST))
    source = connect(shop.url("shop_capture"))
    tables = source.describe(["sales.orders"])
    source.install(tables)
    shop.run(
        "shop_owner",
        "INSERT INTO sales.orders VALUES (1, 'Oslo')",
        "ALTER TABLE sales.orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "TRUNCATE sales.orders",
        "ALTER TABLE sales.orders DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY",
    )
    with pytest.raises(CaptureBypassed, match="row-level security"):
        source.capture(tables)
    source.close()


def test_rows_that_a_policy_hides_are_no_first_state(shop: Shop) -> None:
    shop.run("postgres", *(statement.format(database=shop.database) for statement in LEAST))
    shop.run("shop_owner", "ALTER TABLE sales.orders ENABLE ROW LEVEL SECURITY")
    source = connect(shop.url("shop_capture"))
    tables = source.describe(["sales.orders"])
    assert source.check(tables, installed=False) == []
    shop.run("shop_owner", "ALTER TABLE sales.orders FORCE ROW LEVEL SECURITY")
    (problem,) = source.check(tables, installed=False)
    assert "row security" in problem.what
    with pytest.raises(PrivilegeMissing):
        source.install(tables)
    shop.run("postgres", "ALTER ROLE shop_capture BYPASSRLS")
    source.install(tables)
    shop.run("postgres", "ALTER ROLE shop_capture NOBYPASSRLS")
    (problem,) = source.check(tables, installed=True)
    assert "row security" in problem.what
    source.close()


def test_a_password_is_nowhere_to_be_seen(postgres_lab_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres_lab_server.url().replace("postgres@", "postgres:s3cr3t-word@")
    source = connect(url)
    assert "s3cr3t-word" not in repr(source)
    assert "s3cr3t-word" not in str(vars(source))
    source.close()
    for broken in ("postgresql://me:s3cr3t-word@localhost:1/none", url.replace("/postgres?", "/s3cr3t-word?")):
        with pytest.raises(SourceUnreachable) as refusal:
            connect(broken)
        shown = f"{refusal.value} {refusal.value!r} {refusal.value.help} {refusal.value.__cause__!r}"
        assert "me:s3cr3t-word" not in shown
        assert refusal.value.__suppress_context__
    monkeypatch.setenv("MATVIEW_SECRET_IN_TESTS", "s3cr3t-word")
    source = connect(url.replace("s3cr3t-word", "${MATVIEW_SECRET_IN_TESTS}"))
    assert "s3cr3t-word" not in repr(source)
    source.close()


def test_secret_options_and_odd_ones_are_not_shown(postgres_lab_server: PostgresServer) -> None:
    url = postgres_lab_server.url()
    source = connect(f"{url}&sslpassword=s3cr3t-word")
    assert "s3cr3t-word" not in f"{source!r} {vars(source)}"
    source.close()
    for option in ("connect_timeout=x", "no_such_token=s3cr3t-word"):
        with pytest.raises((BadSourceUrl, SourceUnreachable)) as refusal:
            connect(f"{url}&{option}")
        assert "s3cr3t-word" not in f"{refusal.value} {refusal.value!r} {refusal.value.help}"
