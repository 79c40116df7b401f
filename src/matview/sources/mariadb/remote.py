"""Subqueries at a MariaDB server, in state old: one transaction, one snapshot, one query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pymysql
from sqlglot import exp

from matview.errors import TypeNotCarried
from matview.sources.carried import Carried, batch
from matview.sources.engine import WEIGHT, SourceColumn, SourceTable, Taken
from matview.sources.mariadb.capture import Place, conditions, numbers_in, places
from matview.sources.mariadb.connect import Connection, Database, execute, fetched, streamed
from matview.sources.mariadb.install import raise_drift
from matview.sources.mariadb.layout import quote
from matview.sources.mariadb.numbers import Numbers
from matview.sources.mariadb.objects import NUMBER
from matview.sources.mariadb.types import CARRIED, carried_as
from matview.sources.names import split
from matview.sources.sides import SIDES
from matview.sources.state import (
    CHANGES_OF,
    Undoing,
    column,
    columns_of,
    quoted,
    restored,
    state_old,
    touched,
    with_states,
)
from matview.sources.subset import Asked, asked
from matview.sources.types import spark_type

BATCH = 10_000
ROWS = 1_000
"""How many rows of a shipped relation one statement carries."""

DECLARED = {
    "boolean": "TINYINT",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "DOUBLE",
    "double": "DOUBLE",
    "string": "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    "binary": "LONGBLOB",
    "date": "DATE",
    "timestamp": "DATETIME(6)",
    "timestamp_ntz": "DATETIME(6)",
}
"""How a column of a Spark type is declared in a temporary table; a time with zone is in that of the world."""


def evaluate(
    database: Database,
    query: exp.Query,
    tables: Sequence[SourceTable],
    taken: Taken,
    shipped: Mapping[str, pa.Table],
    besides: Sequence[Taken] = (),
) -> Iterator[pa.RecordBatch]:
    with database.connected() as connection:
        relations = Relations(connection, database)
        for name, relation in shipped.items():
            relations.ship(name, relation)
        execute(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        raise_drift(connection, database, tables)
        for place in places(connection, database, tables):
            relations.old(place, (taken, *besides))
            relations.changed(place, taken)
        question = asked(query, relations.columns, literal)
        yield from answer(connection, question, relations)


def answer(connection: Connection, question: Asked, relations: Relations) -> Iterator[pa.RecordBatch]:
    text = with_states(quoted(question.query), relations.names).sql("mysql")
    own_names = [f"c{n}" for n in range(len(question.columns))]
    carriers = [carrier(kind) for _, kind in question.columns]
    forms = [read_as(kind).format(name) for name, (_, kind) in zip(own_names, question.columns, strict=True)]
    definitions = [*relations.definitions, f"__answer ({', '.join(own_names)}) AS ({text})"]
    columns = [SourceColumn(name, kind, kind) for name, kind in question.columns]
    for rows in streamed(connection, f"WITH {', '.join(definitions)} SELECT {', '.join(forms)} FROM __answer", BATCH):
        yield batch(rows, columns, carriers, lambda _: "an answer")


def carrier(kind: str) -> Carried:
    """How an answer of a Spark type is carried."""
    if kind == "boolean":
        return Carried(("BOOLEAN",), kind, frozenset({int}), "true or false", bool)
    if kind.startswith("decimal"):
        return Carried((kind,), kind, frozenset({int, Decimal}), "a decimal", Decimal)
    return next(typed for typed in CARRIED if typed.type == kind)


def read_as(kind: str) -> str:
    return "CAST({0} AS CHAR)" if kind in ("date", "timestamp", "timestamp_ntz") else "{0}"


class Relations:
    """What a query may name: common table expressions over tables and their changes, and temporary tables."""

    def __init__(self, connection: Connection, database: Database) -> None:
        self.connection = connection
        self.own = database.own
        self.names: dict[str, Callable[[], exp.Query | exp.Table]] = {}
        self.columns: dict[str, dict[str, str]] = {}
        self.definitions = list[str]()
        self.numbering = count()

    def define(self, name: str, columns: dict[str, str], text: str) -> None:
        own = f"__state_{len(self.definitions)}"
        self.definitions.append(f"{own} AS ({text})")
        self.names[name], self.columns[name] = partial(exp.to_table, own), columns

    def temporary(self, columns: str) -> str:
        """A temporary table with these columns; it goes with the connection."""
        name = f"temporary_{next(self.numbering)}"
        execute(self.connection, f"CREATE TEMPORARY TABLE {quote(self.own)}.{name} ({columns}) ENGINE = InnoDB")
        return name

    def fill(self, name: str, rows: Sequence[Sequence[Any]], width: int) -> None:
        place, marks = quote(self.own).replace("%", "%%"), ", ".join(["%s"] * width)
        with self.connection.cursor() as cursor:
            for start in range(0, len(rows), ROWS):
                cursor.executemany(f"INSERT INTO {place}.{name} VALUES ({marks})", rows[start : start + ROWS])

    def ship(self, name: str, relation: pa.Table) -> None:
        columns = {field.name: spark_type(field.type) for field in relation.schema}
        table = self.temporary(", ".join(f"{quote(column)} {declared(kind)} NULL" for column, kind in columns.items()))
        for part in relation.to_batches(BATCH):
            values = [shipped_values(column) for column in part.columns]
            try:
                self.fill(table, list(zip(*values, strict=True)), len(columns))
            except pymysql.ProgrammingError as error:
                raise TypeNotCarried(f"a value of {name} cannot be sent to MariaDB: {error}") from error
        self.names[name] = lambda: exp.table_(table, self.own, quoted=True)
        self.columns[name] = columns

    def changed(self, place: Place, taken: Taken) -> None:
        columns = {column.name: column.type for column in place.table.columns} | {WEIGHT: "bigint"}
        sides = [
            f"SELECT {plain(place.table)}, {weight} AS {quote(WEIGHT)} FROM {place.objects.side(side)} WHERE {where}"
            for side, weight in (("added", 1), ("deleted", -1))
            for where in conditions(numbers_in(taken, place.table.name, side)) or ["FALSE"]
        ]
        self.define(f"{CHANGES_OF}{place.table.name}", columns, " UNION ALL ".join(sides))

    def old(self, place: Place, sets: Sequence[Taken]) -> None:
        """R^o: the table itself where nothing has changed since, else by formula (3)."""
        later = {side: self.later(place, side, sets) for side in SIDES}
        source = quote(split(place.table.name)[-1])
        if any(later.values()):
            source = self.undone(place, {side: self.numbers(numbers) for side, numbers in later.items()})
        columns = {column.name: column.type for column in place.table.columns}
        self.define(place.table.name, columns, f"SELECT {plain(place.table)} FROM {source}")

    def undone(self, place: Place, later: Mapping[str, str]) -> str:
        """All of it in the one query: only what is no part of another statement reads in the snapshot without locks."""
        undo = undoing(place, later, self.own)
        keys = self.common("touched", touched(undo))
        rows = self.common("restored", restored(undo, keys))
        return f"({state_old(undo, keys, rows).sql('mysql')}) AS r"

    def common(self, name: str, query: exp.Query) -> exp.Query:
        own = f"__{name}_{len(self.definitions)}"
        self.definitions.append(f"{own} AS ({query.sql('mysql')})")
        return exp.select("*").from_(own)

    def later(self, place: Place, side: str, sets: Sequence[Taken]) -> list[int]:
        """Delta rows of transactions that are neither in one of the sets nor before it."""
        known = [numbers_in(one, place.table.name, side, part) for one in sets for part in ("tables", "before")]
        query = f"SELECT {NUMBER} FROM {place.objects.side(side)}"
        parts = (f"{query} WHERE {where}" for where in conditions(Numbers.united(known).others()))
        return [number for part in parts for (number,) in fetched(self.connection, part)]

    def numbers(self, numbers: Sequence[int]) -> str:
        table = self.temporary("n BIGINT UNSIGNED NOT NULL PRIMARY KEY")
        self.fill(table, [(number,) for number in numbers], 1)
        return table


def undoing(place: Place, later: Mapping[str, str], own: str) -> Undoing:
    columns = [column.name for column in place.table.columns]
    current = exp.table_(split(place.table.name)[-1], quoted=True)
    added, deleted = (of_numbers(place, side, later[side], own) for side in ("added", "deleted"))
    return Undoing(columns, place.table.key, current, added, deleted, partial(in_print, place.table))


def of_numbers(place: Place, side: str, numbers: str, own: str) -> exp.Query:
    """The delta rows with the numbers in a table, each looked up by its own: not in the view of them all, of which
    MariaDB would make a copy first."""
    columns = [column.name for column in place.table.columns]
    found: list[exp.Query] = [
        exp.select(*columns_of("d", columns))
        .from_(exp.table_(delta, own, quoted=True, alias="d"))
        .join(
            exp.table_(numbers, own, quoted=True, alias="l"),
            on=exp.EQ(this=column("l", "n"), expression=column("d", NUMBER)),
        )
        for delta in place.objects.deltas(side)
    ]
    return exp.union(*found, distinct=False, copy=False)


def in_print(table: SourceTable, alias: str, columns: Sequence[str]) -> exp.Expr:
    """A row as digests of its values: of their bytes, since texts that MariaDB calls equal need not be the same."""
    digests = [
        exp.Anonymous(this="SHA2", expressions=[exact(table, alias, name), exp.Literal.number(256)]) for name in columns
    ]
    parts = [exp.Coalesce(this=digest, expressions=[exp.Literal.string("-")]) for digest in digests]
    return exp.Anonymous(this="CONCAT", expressions=parts)


def exact(table: SourceTable, alias: str, name: str) -> exp.Expr:
    """MariaDB writes a FLOAT with six digits; as a DOUBLE it has them all."""
    kinds = {column.name: column.type for column in table.columns}
    value = column(alias, name)
    return exp.Cast(this=value, to=exp.DataType.build("double")) if kinds[name] == "float" else value


def plain(table: SourceTable) -> str:
    """The columns as values that compare here as they do in Spark."""
    return ", ".join(
        f"{carried_as(column.source_type)[0].plain.format(quote(column.name))} AS {quote(column.name)}"
        for column in table.columns
    )


def literal(value: date | datetime) -> exp.Expr:
    text = value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    kind = "datetime(6)" if isinstance(value, datetime) else "date"
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(kind, dialect="mysql"))


def declared(kind: str) -> str:
    if kind.startswith("decimal"):
        return kind.upper()
    if kind not in DECLARED:
        raise TypeNotCarried(f"a {kind} cannot be sent to MariaDB")
    return DECLARED[kind]


def shipped_values(values: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(values.type) and values.type.tz:
        return [None if value is None else value.astimezone(UTC).replace(tzinfo=None) for value in values.to_pylist()]
    return list(values.to_pylist())
