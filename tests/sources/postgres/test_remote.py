"""Subqueries at the source: compared as Spark compares, served by indexes, one statement for all tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from tests.sources.lab import Row, bag
from tests.sources.postgres.lab import PostgresLab

from matview.algebra.passes import normalised
from matview.algebra.schema import Column, Schema
from matview.delta import change
from matview.errors import SourceTableUnknown, UnsupportedStatement
from matview.plan.sites import Where, cut, question
from matview.sources import connect
from matview.sources.engine import Source, SourceColumn, SourceTable
from matview.sources.postgres import PostgresSource, remote
from matview.sources.postgres.sets import Transactions
from matview.sources.sayable import sayable
from matview.sql.lower import lower
from matview.sql.render import spelled_out


@pytest.fixture
def source(lab: PostgresLab) -> Iterator[Source]:
    source = connect(lab.url)
    yield source
    source.close()


def parsed(text: str) -> exp.Query:
    tree = sqlglot.parse_one(text, dialect="spark")
    assert isinstance(tree, exp.Query)
    return tree


COMPARED = {
    "name < 'b'": ["B", "Z", "a"],
    "name BETWEEN 'A' AND 'Z'": ["B", "Z"],
    "name > 'a' OR name = 'B'": ["B", "Ä"],
    "fixed = 'ab'": [],
    "fixed = 'ab   '": ["a"],
    "mood > 'glad'": ["Z", "a"],
    "mood = 'sad'": ["Z", "a"],
    "span = '24:00:00'": ["B"],
    "span = '1 day'": ["a"],
    "code = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'": ["a"],
    "at >= TIMESTAMP_NTZ '2024-01-01 00:00:00'": ["a"],
    "day = DATE '2024-02-29'": ["a"],
    "name <=> NULL": [],
    "name IN ('a', 'Z') AND NOT name = 'Z'": ["a"],
}


@pytest.mark.parametrize("condition", COMPARED)
@pytest.mark.parametrize("behind", [False, True])
def test_values_compare_as_in_spark(lab: PostgresLab, source: Source, condition: str, behind: bool) -> None:
    lab.execute(
        "CREATE TYPE feeling AS ENUM ('sad', 'glad')",
        "CREATE TABLE r (name text PRIMARY KEY, fixed char(5), mood feeling, span interval, code uuid, at timestamp, "
        "day date)",
        "INSERT INTO r VALUES ('a', 'ab', 'sad', '1 day', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '2024-01-01', "
        "'2024-02-29'), ('B', 'b', 'glad', '24 hours', NULL, NULL, NULL), ('Z', NULL, 'sad', NULL, NULL, NULL, NULL), "
        "('Ä', NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    tables = source.describe(["r"])
    source.install(tables)
    taken = source.capture(tables).taken
    if behind:
        lab.execute("UPDATE r SET span = NULL, mood = NULL", "DELETE FROM r WHERE name = 'a'")
    rows = bag(source.evaluate(parsed(f"SELECT name FROM r WHERE {condition}"), tables, taken, {}))
    assert sorted(row[0] for row in rows.elements()) == sorted(COMPARED[condition])


def test_texts_are_put_in_order_by_their_bytes() -> None:
    """Whatever language the source's collation is for; equality is left to its indexes."""
    table = SourceTable("r", (SourceColumn("name", "text", "string"), SourceColumn("id", "integer", "int")))
    asked = remote.understood(parsed("SELECT id FROM r WHERE name < 'b' AND name = 'a' AND id < 3"), [table], {})
    text = remote.rendered(asked.query, {"r": "SELECT"}, {})
    assert text.count('COLLATE "C"') == 2
    assert "\"name\" = 'a'" in text


@pytest.mark.parametrize(
    "query",
    ["SELECT upper(name) FROM r", "SELECT sum(id) FROM r", "SELECT nothing FROM r", "SELECT relname FROM pg_class"],
)
def test_what_the_source_could_answer_otherwise_is_not_asked(lab: PostgresLab, source: Source, query: str) -> None:
    lab.execute("CREATE TABLE r (id int, name text)")
    tables = source.describe(["r"])
    source.install(tables)
    with pytest.raises((UnsupportedStatement, SourceTableUnknown)):
        list(source.evaluate(parsed(query), tables, source.capture(tables).taken, {}))


def plan(
    source: PostgresSource, query: exp.Query, tables: list[SourceTable], taken: object, shipped: dict[str, pa.Table]
) -> str:
    """The plan of what `evaluate` sends."""
    connections = source._connections
    asked = remote.understood(query, tables, shipped)
    transactions = Transactions.from_taken(taken)  # type: ignore[arg-type]
    with connections.transaction("ISOLATION LEVEL REPEATABLE READ") as connection:
        known = remote.refuse_drift(connection, connections.schema, tables)
        remote.ship(connection, shipped)
        states = remote.states_of(connection, connections.schema, tables, known, transactions)
        text = remote.rendered(asked.query, states, shipped)
        return "\n".join(row[0] for row in connection.execute(f"EXPLAIN {text}"))


@pytest.mark.conforms("M4")
@pytest.mark.parametrize("behind", [False, True])
def test_indexes_serve(lab: PostgresLab, source: PostgresSource, behind: bool) -> None:
    lab.execute(
        "CREATE TABLE customer (id int PRIMARY KEY, name text)",
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(9,2))",
        "INSERT INTO customer SELECT g, 'name ' || g FROM generate_series(1, 20000) AS g",
        "INSERT INTO orders SELECT g, g % 20000, g FROM generate_series(1, 40000) AS g",
        "CREATE INDEX orders_customer ON orders (customer)",
        "ANALYZE customer, orders",
    )
    tables = source.describe(["customer", "orders"])
    source.install(tables)
    taken = source.capture(tables).taken
    if behind:
        lab.execute("UPDATE customer SET name = 'later' WHERE id < 20", "DELETE FROM orders WHERE customer = 7")
    shipped = {"some": pa.table({"id": pa.array([7, 8], pa.int32())})}
    query = (
        "SELECT c.name, o.amount FROM some AS s JOIN customer AS c ON c.id = s.id JOIN orders AS o ON o.customer = c.id"
    )
    rows: Counter[Row] = bag(source.evaluate(parsed(query), tables, taken, shipped))
    assert sorted(name for name, _ in rows.elements()) == ["name 7"] * 2 + ["name 8"] * 2
    explained = plan(source, parsed(query), tables, taken, shipped)
    assert "customer_pkey" in explained, explained
    assert "orders_customer" in explained, explained
    assert "Seq Scan on customer" not in explained, explained
    assert "Seq Scan on orders" not in explained, explained


VIEW = (
    "SELECT c.name, o.amount, i.part FROM customer c JOIN orders o ON o.customer = c.id JOIN item i ON i.orders = o.id "
    "JOIN here h ON h.region = c.region"
)
SCHEMAS = {
    "customer": Schema((Column("id", "int"), Column("name", "string"), Column("region", "int")), ("id",)),
    "orders": Schema((Column("id", "int"), Column("customer", "int"), Column("amount", "int")), ("id",)),
    "item": Schema((Column("orders", "int"), Column("part", "string"))),
    "here": Schema((Column("region", "int"),)),
}


@pytest.mark.conforms("M3", "M4")
@pytest.mark.parametrize("behind", [False, True])
def test_indexes_serve_what_a_view_asks(lab: PostgresLab, source: PostgresSource, behind: bool) -> None:
    """All terms of a view's change in one query: three tables as they were before the set and after it, beside changes
    and keys that are sent along. No table is read whole, though others have written since."""
    lab.execute(
        "CREATE TABLE customer (id int PRIMARY KEY, name text, region int)",
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)",
        "CREATE TABLE item (orders int, part text)",
        "INSERT INTO customer SELECT g, 'name ' || g, g FROM generate_series(1, 20000) AS g",
        "INSERT INTO orders SELECT g, g % 20000, g FROM generate_series(1, 40000) AS g",
        "INSERT INTO item SELECT g % 40000, 'part ' || g FROM generate_series(1, 60000) AS g",
        "CREATE INDEX customer_region ON customer (region)",
        "CREATE INDEX orders_customer ON orders (customer)",
        "CREATE INDEX item_orders ON item (orders)",
        "ANALYZE customer, orders, item",
    )
    tables = source.describe(["customer", "orders", "item"])
    source.install(tables)
    lab.together(
        "UPDATE customer SET name = 'new' WHERE id = 5",
        "UPDATE orders SET amount = 0 WHERE id = 5",
        "INSERT INTO item VALUES (5, 'new')",
    )
    taken = source.capture(tables).taken
    if behind:
        lab.execute("UPDATE customer SET name = 'later' WHERE id = 5", "DELETE FROM item WHERE orders = 5")
    node = normalised(lower(parsed(VIEW), lambda table: SCHEMAS[table.name]))
    moved = change(node, SCHEMAS)
    assert moved is not None
    asks = cut(moved, Where(dict.fromkeys(["customer", "orders", "item"], "shop"), sayable)).asks
    query = spelled_out(question(asks).node)
    (sent,) = {name for ask in asks for name, _ in ask.sent}
    shipped = {sent: pa.table({"k0": pa.array([5, 6], pa.int32())})}
    assert bag(source.evaluate(query, tables, taken, shipped))
    explained = plan(source, query, tables, taken, shipped)
    for table in ("customer", "orders", "item"):
        assert f"Seq Scan on {table}" not in explained, explained
