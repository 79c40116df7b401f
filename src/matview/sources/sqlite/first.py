"""The first state of a table, read in short transactions: a long one would keep writers out (with a journal),
or let the log of the file grow (WAL).

Each step reads some rows as they are now and, in the same snapshot, undoes what was captured of them since the start:
R^o = (R ∪ ▿R) − ▵R, row by row. So all steps together show the moment at which the numbers were fixed.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa

from matview.errors import SourceDrifted
from matview.sources.carried import Row
from matview.sources.engine import FirstState, Slice, SourceTable, Taken
from matview.sources.slicing import bounds, share
from matview.sources.sqlite.capture import Place, named, places, range_of, visible
from matview.sources.sqlite.connect import Database
from matview.sources.sqlite.layout import Layout, layout
from matview.sources.sqlite.objects import NUMBER
from matview.sources.sqlite.recording import ROW
from matview.sources.sqlite.rows import batch, fetched
from matview.sources.sqlite.settling import reading
from matview.sources.sqlite.uniques import quote

STEP = 10_000
"""Rows read in one transaction: some ten milliseconds."""
COUNTED = 1_000_000
"""A table is counted so far, which takes some ten milliseconds; it may have more rows."""


@contextmanager
def first_state(database: Database, tables: Sequence[SourceTable]) -> Iterator[SqliteFirstState]:
    """No snapshot is held meanwhile."""
    yield SqliteFirstState(database, tables)


class SqliteFirstState(FirstState):
    """The tables as they were when it was made."""

    def __init__(self, database: Database, tables: Sequence[SourceTable]) -> None:
        self.database = database
        with reading(database, tables) as connection:
            self.taken: Taken = visible(connection, places(database, connection, tables))
            self.layouts: Mapping[str, Layout] = {table.name: layout(connection, table.name) for table in tables}
            self.schema = database.schema(connection)
            self.last = {name: last(connection, known) for name, known in self.layouts.items()}

    def slices(self, table: SourceTable, rows: int) -> Sequence[Slice]:
        """Equal ranges of rowids, which need not have equally many rows; the outer ones are open, since rows may have
        been there that are gone. A table without rowid is one slice."""
        known = self.layouts[table.name]
        with self.database.reading() as connection:
            there = count(connection, known)
            least, greatest = extremes(connection, known)
        if least is None or greatest is None:
            return [Slice(table, ":", there)]
        ends = ["", *map(str, bounds(least, greatest, rows)[1:-1]), ""]
        size = share(there, len(ends) - 1)
        return [Slice(table, f"{low}:{high}", size) for low, high in pairwise(ends)]

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """Step after step, each beginning after the last row of the one before."""
        known = self.layouts[part.table.name]
        low, high = ((int(bound),) if bound else None for bound in part.condition.split(":"))
        while True:
            rows, low, more = self.step(part.table, known, low, high)
            if rows:
                yield batch(rows, part.table.columns, partial(named, part.table, rows))
            if not more:
                return

    def step(self, table: SourceTable, known: Layout, low: Row | None, high: Row | None) -> tuple[list[Row], Row, bool]:
        """Rows as they were, with their rowids where there are any; the last one looked at; whether more may follow.

        What comes after the last row of the beginning has come since, and is not looked at: writers who add row after
        row would never be caught up with. What was there and is gone, or has moved, is among the changes.
        """
        with reading(self.database, [table]) as connection:
            self.check_numbering(connection, known)
            (place,) = places(self.database, connection, [table])
            inside, bounds = between(known, "", low, high or self.last[table.name])
            query = f"SELECT {selected(known)} FROM main.{quote(known.name)} WHERE {inside} ORDER BY "
            query += f"{', '.join(order(known))} LIMIT {STEP}"
            rows = fetched(connection, query, bounds) if self.last[table.name] else []
            more = len(rows) == STEP
            end = row_known_by(known, rows[-1]) if more else high
            inside, bounds = between(known, ROW, low, end)
            undone = self.changed(connection, place, known, inside, bounds)
        return undo(known, rows, undone), end or (), more

    def check_numbering(self, connection: sqlite3.Connection, known: Layout) -> None:
        if not known.stable and self.database.schema(connection) != self.schema:
            raise SourceDrifted(
                f"the rows of {known.table.name} may have been numbered anew (VACUUM) while they were read",
                help="nothing was changed; run it again",
            )

    def changed(
        self, connection: sqlite3.Connection, place: Place, known: Layout, inside: str, bounds: Sequence[Any]
    ) -> list[tuple[int, Row]]:
        """What was captured since the beginning: -1 for a row that came, 1 for one that went."""
        found = list[tuple[int, Row]]()
        row = f", {ROW}" if known.rowid is not None else ""
        names = ", ".join(quote(column.name) for column in known.columns)
        for side, sign in (("added", -1), ("deleted", 1)):
            query = f"SELECT {names}{row} FROM main.{place.delta(side)} WHERE {NUMBER} > ? AND {inside}"
            after = range_of(self.taken, place.table, side)[1]
            found += [(sign, values) for values in fetched(connection, query, [after, *bounds])]
        return found


def count(connection: sqlite3.Connection, known: Layout) -> int:
    """How many rows there are, as far as they are counted."""
    query = f"SELECT count(*) FROM (SELECT 1 FROM main.{quote(known.name)} LIMIT {COUNTED})"
    (found,) = connection.execute(query).fetchone()
    return int(found)


def last(connection: sqlite3.Connection, known: Layout) -> Row | None:
    """By what the last row is known, if there is one."""
    ordered = ", ".join(f"{term} DESC" for term in order(known))
    query = f"SELECT {selected(known)} FROM main.{quote(known.name)} ORDER BY {ordered} LIMIT 1"
    found = fetched(connection, query, ())
    return row_known_by(known, found[0]) if found else None


def extremes(connection: sqlite3.Connection, known: Layout) -> tuple[int | None, int | None]:
    """The least rowid and the greatest, if there are any."""
    if known.rowid is None:
        return None, None
    name = quote(known.rowid)
    least, greatest = connection.execute(f"SELECT min({name}), max({name}) FROM main.{quote(known.name)}").fetchone()
    return least, greatest


def undo(known: Layout, rows: list[Row], changed: Sequence[tuple[int, Row]]) -> list[Row]:
    """Rows that were touched are counted; the others are as they were."""
    if not changed:
        return rows
    touched = {row_known_by(known, row) for _, row in changed}
    counts = Counter({row: 1 for row in rows if row_known_by(known, row) in touched})
    for sign, row in changed:
        counts[row] += sign
    return [row for row in rows if row_known_by(known, row) not in touched] + list(counts.elements())


def row_known_by(known: Layout, row: Row) -> Row:
    if known.rowid is not None:
        return row[-1:]
    place = {column.name: n for n, column in enumerate(known.columns)}
    return tuple(row[place[part.text]] for part in known.primary)


def selected(known: Layout) -> str:
    names = [quote(column.name) for column in known.columns]
    return ", ".join([*names, quote(known.rowid)] if known.rowid is not None else names)


def order(known: Layout, row: str = "") -> list[str]:
    """What rows of the table, or (with `row`) of a delta table, are known by, as terms that sort."""
    if known.rowid is not None:
        return [quote(row or known.rowid)]
    return [f"{quote(part.text)} COLLATE {quote(part.collation)}" for part in known.primary]


def between(known: Layout, row: str, low: Row | None, high: Row | None) -> tuple[str, list[Any]]:
    """The condition for rows after `low` and up to `high`, of the table or (with `row`) of a delta table."""
    terms = order(known, row)
    left = f"({', '.join(terms)})"
    marks = f"({', '.join('?' * len(terms))})"
    conditions = [f"{left} > {marks}"] if low else []
    conditions += [f"{left} <= {marks}"] if high else []
    return " AND ".join(conditions) or "1", [*(low or ()), *(high or ())]
