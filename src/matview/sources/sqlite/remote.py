"""Subqueries at a SQLite file, in state old. What is in the way of a writer ends when the answer has been computed.

Tables, changes and shipped relations are views and tables of the connection's own temporary database; there, dates and
times have one form each, texts are compared by their bytes, and nothing is written to the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from matview.errors import SourceDrifted, TypeNotCarried
from matview.sources.engine import WEIGHT, SourceColumn, SourceTable, Taken
from matview.sources.sqlite.capture import Place, places, range_of
from matview.sources.sqlite.connect import Database
from matview.sources.sqlite.layout import Layout, layout
from matview.sources.sqlite.objects import NUMBER
from matview.sources.sqlite.recording import ROW, identified_by
from matview.sources.sqlite.rows import batch, fetched
from matview.sources.sqlite.settling import begin_settled
from matview.sources.sqlite.types import carried_as, day, exact_text, moment
from matview.sources.sqlite.uniques import quote
from matview.sources.state import CHANGES_OF, with_states
from matview.sources.subset import Asked, asked
from matview.sources.types import spark_type

BATCH = 20_000

DECLARED = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "timestamp"), "INTEGER"),
    **dict.fromkeys(("float", "double"), "REAL"),
    "string": "TEXT",
    "binary": "BLOB",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
}
"""How a column of a Spark type is declared in the temporary database; a time with zone is kept as microseconds."""


def evaluate(
    database: Database,
    query: exp.Query,
    tables: Sequence[SourceTable],
    taken: Taken,
    shipped: Mapping[str, pa.Table],
    besides: Sequence[Taken] = (),
) -> Iterator[pa.RecordBatch]:
    failures = list[TypeNotCarried]()
    with database.errors(), closing(database.open()) as connection:
        connection.create_function("matview_form", 3, normaliser(failures), deterministic=True)
        relations = Relations(connection)
        for name, relation in shipped.items():
            relations.ship(name, relation)
        try:
            question = prepared(database, connection, relations, query, tables, (taken, *besides))
        except sqlite3.OperationalError as error:
            raise failures[0] if failures else error from None
        yield from answer(connection, question)


def prepared(
    database: Database,
    connection: sqlite3.Connection,
    relations: Relations,
    query: exp.Query,
    tables: Sequence[SourceTable],
    sets: Sequence[Taken],
) -> Asked:
    """The answer in a temporary table, from one snapshot. The first of the sets is the one whose changes are told."""
    begin_settled(database, connection, tables)
    for place in places(database, connection, tables):
        relations.old(place, layout(connection, place.table.name), sets)
        relations.changed(place, sets[0])
    question = asked(with_states(query, relations.names), relations.columns, literal)
    fields = ", ".join(f"c{n}" for n in range(len(question.columns)))  # without types: values stay what they are
    connection.execute(f"CREATE TEMP TABLE matview_answer ({fields})")
    connection.execute(f"INSERT INTO temp.matview_answer {question.query.sql('sqlite', identify=True)}")
    connection.execute("COMMIT")
    return question


def answer(connection: sqlite3.Connection, question: Asked) -> Iterator[pa.RecordBatch]:
    columns = [SourceColumn(name, declared(kind), kind) for name, kind in question.columns]
    last = 0
    while True:
        query = "SELECT *, rowid FROM temp.matview_answer WHERE rowid > ? ORDER BY rowid LIMIT ?"
        rows = fetched(connection, query, (last, BATCH))
        if not rows:
            return
        yield batch(rows, columns, lambda _: "an answer")
        last = rows[-1][-1]


class Relations:
    """What a query may name, as relations of the temporary database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.names: dict[str, Callable[[], exp.Query | exp.Table]] = {}
        self.columns: dict[str, dict[str, str]] = {}

    def add(self, name: str, columns: dict[str, str]) -> str:
        own = f"matview_{len(self.columns)}"
        self.names[name] = lambda: exp.to_table(own)
        self.columns[own] = columns
        return own

    def ship(self, name: str, relation: pa.Table) -> None:
        columns = {field.name: spark_type(field.type) for field in relation.schema}
        own = self.add(name, columns)
        fields = ", ".join(f"{quote(column)} {declared(kind)}" for column, kind in columns.items())
        self.connection.execute(f"CREATE TEMP TABLE {own} ({fields})")
        marks = ", ".join("?" * len(columns))
        for part in relation.to_batches(BATCH):
            values = [shipped_values(column, kind) for column, kind in zip(part.columns, columns.values(), strict=True)]
            self.connection.executemany(f"INSERT INTO temp.{own} VALUES ({marks})", zip(*values, strict=True))

    def changed(self, place: Place, taken: Taken) -> None:
        columns = {column.name: column.type for column in place.table.columns} | {WEIGHT: "bigint"}
        own = self.add(f"{CHANGES_OF}{place.table.name}", columns)
        sides = [
            f"SELECT {formed(place.table)}, {weight} AS {quote(WEIGHT)} FROM main.{place.delta(side)} "
            f"WHERE {NUMBER} > {low:d} AND {NUMBER} <= {high:d}"
            for side, weight in (("added", 1), ("deleted", -1))
            for low, high in [range_of(taken, place.table, side)]
        ]
        self.connection.execute(f"CREATE TEMP VIEW {own} AS {' UNION ALL '.join(sides)}")

    def old(self, place: Place, known: Layout, sets: Sequence[Taken]) -> None:
        """R^o: rows that nothing has touched since, straight from the table; of the others, those that were there."""
        own = self.add(place.table.name, {column.name: column.type for column in place.table.columns})
        current = f"SELECT {formed(place.table)} FROM main.{quote(known.name)}"
        self.connection.execute(f"CREATE TEMP TABLE {own}_later AS {later(place, known, sets)}")
        touched = ", ".join(quote(name) for name in identified_by(known))
        if self.connection.execute(f"SELECT EXISTS (SELECT 1 FROM temp.{own}_later)").fetchone() == (1,):
            rows = ", ".join(quote(part) for part in ([known.rowid] if known.rowid else identified_by(known)))
            is_touched = f"({rows}) IN (SELECT {touched} FROM temp.{own}_later)"
            self.restore(own, known, is_touched)
            current += f" WHERE NOT {is_touched} UNION ALL SELECT {formed(place.table)} FROM temp.{own}_restored"
        self.connection.execute(f"CREATE TEMP VIEW {own} AS {current}")

    def restore(self, own: str, known: Layout, is_touched: str) -> None:
        """Rows that were touched, counted one by one: each was there once or not at all."""
        row = [quote(known.rowid)] if known.rowid else []
        names = [quote(column.name) for column in known.columns]
        by = ", ".join(f"{name} COLLATE BINARY" for name in ([ROW] if row else []) + names)
        self.connection.execute(
            f"CREATE TEMP TABLE {own}_restored AS SELECT {', '.join(names)}, sum(__sign) AS __times FROM ("
            f"SELECT {', '.join(([ROW] if row else []) + names)}, __sign FROM temp.{own}_later UNION ALL "
            f"SELECT {', '.join(row + names)}, 1 FROM main.{quote(known.name)} WHERE {is_touched}"
            f") GROUP BY {by} HAVING sum(__sign) <> 0"
        )
        if self.connection.execute(f"SELECT 1 FROM temp.{own}_restored WHERE __times < 0").fetchone():
            raise SourceDrifted(
                f"the rows of {known.table.name} were numbered anew (VACUUM) after this round began",
                help="nothing was changed; the next round is right again",
            )


def later(place: Place, known: Layout, sets: Sequence[Taken]) -> str:
    """What transactions outside the sets have done, to be undone: sets follow one another, and the last ends them."""
    names = ", ".join(([ROW] if known.rowid else []) + [quote(column.name) for column in known.columns])
    return " UNION ALL ".join(
        f"SELECT {names}, {sign} AS __sign FROM main.{place.delta(side)} "
        f"WHERE {NUMBER} > {max(place.floor[side], *(range_of(one, place.table, side)[1] for one in sets)):d}"
        for side, sign in (("added", -1), ("deleted", 1))
    )


def formed(table: SourceTable) -> str:
    """The columns, each in one form for one value."""
    return ", ".join(f"{form(table, column)} AS {quote(column.name)}" for column in table.columns)


def form(table: SourceTable, column: SourceColumn) -> str:
    name, kind = quote(column.name), carried_as(column.source_type)[0].declared[0]
    if kind in FORMS:
        where = f"column {column.name!r} of {table.name}".replace("'", "''")
        return f"matview_form({name}, '{kind}', '{where}')"
    return f"{name} COLLATE BINARY" if column.type == "string" else name


FORMS: dict[str, Callable[[Any], str]] = {
    "DATE": lambda value: text_of(day(value)),
    "DATETIME": lambda value: text_of(moment(value)),
    "JSON": exact_text,
}


def normaliser(failures: list[TypeNotCarried]) -> Callable[[Any, str, str], str | None]:
    """Values of which SQLite has several forms in the one in which they can be compared; the first that is none is
    remembered."""

    def normalised(value: Any, kind: str, where: str) -> str | None:
        try:
            return None if value is None else FORMS[kind](value)
        except (TypeError, ValueError):
            failures.append(TypeNotCarried(f"{where} has {value!r}, which is no {kind}"))
            raise

    return normalised


def literal(value: date | datetime) -> exp.Expression:
    return exp.Literal.string(text_of(value))


def text_of(value: date | datetime) -> str:
    """The one form of a date or time."""
    return value.isoformat(" ", "microseconds") if isinstance(value, datetime) else value.isoformat()


def declared(kind: str) -> str:
    if kind.startswith("decimal"):
        return kind.upper()
    if kind not in DECLARED:
        raise TypeNotCarried(f"a {kind} cannot be sent to SQLite")
    return DECLARED[kind]


def shipped_values(column: pa.Array, kind: str) -> list[Any]:
    """Values as SQLite would have them from a user: a decimal is read as SQLite reads its text."""
    if kind == "timestamp":
        column = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    values = column.to_pylist()
    if kind in ("date", "timestamp_ntz"):
        return [None if value is None else text_of(value) for value in values]
    return [str(value) if isinstance(value, Decimal) else value for value in values]
