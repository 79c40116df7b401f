"""A subquery at the source in state old, with relations sent along: one transaction, one snapshot, one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial

import pyarrow as pa
import sqlglot
from sqlglot import exp

from matview.errors import SourceTableUnknown
from matview.sources.engine import WEIGHT, SourceTable
from matview.sources.postgres.arrow import Field, read, source_type, write
from matview.sources.postgres.capture import change_source, changed, deltas, refuse_drift
from matview.sources.postgres.connect import Connection, Connections
from matview.sources.postgres.describe import oid_of
from matview.sources.postgres.facts import Recorded
from matview.sources.postgres.layout import TRANSACTION, quote
from matview.sources.postgres.sets import Transactions
from matview.sources.postgres.snapshot import current_names, lock
from matview.sources.state import CHANGES_OF, Undoing, columns_of, quoted, restored, state_old, touched, with_states
from matview.sources.subset import Asked, asked
from matview.sources.types import arrow_type, spark_type

ORDERED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)


def evaluate(
    connections: Connections,
    query: exp.Query,
    tables: Sequence[SourceTable],
    transactions: Transactions,
    besides: Sequence[Transactions],
    shipped: Mapping[str, pa.Table],
) -> Iterator[pa.RecordBatch]:
    """The answer to the query, in batches; the transaction ends with the last one."""
    question = understood(query, tables, shipped)
    used = [table for table in tables if {table.name, CHANGES_OF + table.name} & names_in(question.query)]
    schema = connections.schema
    with connections.borrow() as connection:
        names = current_names(connection, schema, used)
    with connections.transaction("ISOLATION LEVEL REPEATABLE READ READ WRITE") as connection:
        connection.execute("SET LOCAL lock_timeout = '60s'")
        lock(connection, names)
        known = refuse_drift(connection, schema, used)
        ship(connection, shipped)
        states = states_of(connection, schema, used, known, transactions, besides)
        text = rendered(question.query, states, shipped)
        fields = [Field(name, cell(type_, quote(name)), type_) for name, type_ in question.columns]
        yield from read(connection, fields, f"({text}) AS answer")


def understood(query: exp.Query, tables: Sequence[SourceTable], shipped: Mapping[str, pa.Table]) -> Asked:
    """The query with every column resolved, and the Spark types of what it answers."""
    known: dict[str, dict[str, str]] = {}
    for table in tables:
        columns = {column.name: column.type for column in table.columns}
        known[table.name] = columns
        known[CHANGES_OF + table.name] = columns | {WEIGHT: "bigint"}
    for name, rows in shipped.items():
        known[name] = {field.name: spark_type(field.type) for field in rows.schema}
    strange = names_in(query) - known.keys() - {cte.alias for cte in query.find_all(exp.CTE)}
    if strange:
        raise SourceTableUnknown(f"{min(strange)} is no table that the subquery may read")
    return asked(query, known, moment, absent)


def moment(value: date | datetime) -> exp.Expr:
    kind = "timestamp" if isinstance(value, datetime) else "date"
    return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build(kind, dialect="postgres"))


def absent(kind: str) -> exp.Expr:
    """PostgreSQL takes a null for a text, unless it is told."""
    return exp.Cast(this=exp.null(), to=exp.DataType.build(source_type(arrow_type(kind)), dialect="postgres"))


def names_in(query: exp.Query) -> set[str]:
    return {table.name for table in query.find_all(exp.Table)}


def ship(connection: Connection, shipped: Mapping[str, pa.Table]) -> None:
    """Each relation becomes a temporary table, which ends with the transaction."""
    for number, rows in enumerate(shipped.values()):
        columns = ", ".join(f"{quote(field.name)} {source_type(field.type)}" for field in rows.schema)
        connection.execute(f"CREATE TEMPORARY TABLE __shipped_{number} ({columns}) ON COMMIT DROP")
        write(connection, f"pg_temp.__shipped_{number}", rows)
        connection.execute(f"ANALYZE pg_temp.__shipped_{number}")


def states_of(
    connection: Connection,
    schema: str,
    tables: Sequence[SourceTable],
    known: Mapping[int, Recorded],
    transactions: Transactions,
    besides: Sequence[Transactions] = (),
) -> dict[str, str]:
    """What each name stands for, as SQL. Where nothing outside the sets is visible, R^o is the table itself."""
    inside = transactions.condition(TRANSACTION)
    outside = " AND ".join(f"NOT {one.condition(TRANSACTION)}" for one in (transactions, *besides))
    behind = {table.name for table in changed(connection, schema, tables, outside)}
    states = {}
    for table in tables:
        record = known[oid_of(table)]
        source = undone(connection, schema, table, record, outside) if table.name in behind else place(record)
        states[table.name] = plain(table, record, source)
        states[CHANGES_OF + table.name] = plain(table, record, change_source(schema, table, inside), WEIGHT)
    return states


def place(record: Recorded) -> str:
    return f"{quote(record.facts['schema'])}.{quote(record.facts['name'])}"


def plain(table: SourceTable, record: Recorded, source: str, *more: str) -> str:
    """The columns as values that compare here as they do in Spark."""
    columns = [
        f"{record.carriers[column.name].plain.format(quote(column.name))} AS {quote(column.name)}"
        for column in table.columns
    ]
    return f"SELECT {', '.join([*columns, *more])} FROM {source}"


def undone(connection: Connection, schema: str, table: SourceTable, record: Recorded, outside: str) -> str:
    """Formula (3). What is to be undone is worked out once and kept in temporary tables: then the planner knows how
    little it is. A row in print is its text: exact where equality is not, as for json, intervals and collations."""
    columns = [column.name for column in table.columns]
    added, deleted = (
        exp.select(*columns_of("d", columns))
        .from_(sqlglot.to_table(delta, dialect="postgres", alias="d"))
        .where(outside)
        for delta in deltas(schema, [table])
    )
    current = exp.Table(
        this=exp.to_identifier(record.facts["name"], quoted=True),
        db=exp.to_identifier(record.facts["schema"], quoted=True),
    )
    undoing = Undoing(columns, table.key, current, added, deleted, in_print)
    keys = kept(connection, f"__touched_{oid_of(table)}", touched(undoing))
    rows = kept(connection, f"__restored_{oid_of(table)}", restored(undoing, keys))
    return f"({state_old(undoing, keys, rows).sql('postgres')}) AS r"


def kept(connection: Connection, name: str, query: exp.Query) -> exp.Query:
    """The answer in a temporary table, which ends with the transaction; a query that reads it."""
    connection.execute(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {query.sql('postgres')}")
    connection.execute(f"ANALYZE pg_temp.{name}")
    return exp.select("*").from_(f"pg_temp.{name}")


def in_print(alias: str, columns: Sequence[str]) -> exp.Expr:
    row = exp.Anonymous(this="ROW", expressions=columns_of(alias, columns))
    return exp.Cast(this=row, to=exp.DataType.build("text"))


def rendered(query: exp.Query, states: Mapping[str, str], shipped: Mapping[str, pa.Table]) -> str:
    """The query in PostgreSQL's words, over common table expressions that its planner takes apart again."""
    stand_ins: dict[str, Callable[[], exp.Query | exp.Table]] = {}
    definitions = []
    for number, (name, text) in enumerate(states.items()):
        definitions.append(f"__state_{number} AS NOT MATERIALIZED ({text})")
        stand_ins[name] = partial(exp.to_table, f"__state_{number}")
    for number, name in enumerate(shipped):
        stand_ins[name] = partial(exp.to_table, f"pg_temp.__shipped_{number}")
    text = by_bytes(with_states(quoted(query), stand_ins)).sql("postgres")
    return f"WITH {', '.join(definitions)} SELECT * FROM ({text}) AS asked" if definitions else text


def by_bytes(query: exp.Query) -> exp.Query:
    """Where texts are put in an order, it is that of their bytes, as in Spark, not that of a language."""
    for node in list(query.find_all(*ORDERED)):
        for name in ("this", "expression", "low", "high"):
            operand = node.args.get(name)
            if isinstance(operand, exp.Expr) and operand.is_type("text", "varchar"):
                ordered = exp.Collate(this=operand.copy(), expression=exp.to_identifier("C", quoted=True))
                node.set(name, exp.Paren(this=ordered))
    return query


CELLS = {"binary": "encode({0}, 'hex')"}


def cell(spark: str, value: str) -> str:
    return CELLS.get(spark, "array_to_json({0})::text" if spark.startswith("array<") else "{0}").format(value)
