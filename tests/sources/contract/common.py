"""What the parts of the contract share: two captured tables, statements on them, and how they are looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from tests.sources.lab import Lab, Row, bag, net, plus

from matview.sources import connect
from matview.sources.engine import FirstState, Source, SourceTable, Taken

COLUMNS = ("id", "city", "amount")

STATEMENTS: dict[str, tuple[str, ...]] = {
    "insert": ("INSERT INTO stock VALUES (10, 'Oslo', 1.10)",),
    "insert of several rows": ("INSERT INTO stock VALUES (10, 'Oslo', 1.10), (11, 'Oslo', 1.10), (12, NULL, NULL)",),
    "insert of a query": ("INSERT INTO stock SELECT id + 10, city, amount FROM stock",),
    "insert without all columns": ("INSERT INTO stock (id) VALUES (10)",),
    "update of one row": ("UPDATE stock SET amount = 9.99 WHERE id = 1",),
    "update of several rows": ("UPDATE stock SET amount = amount + 1",),
    "update of the key": ("UPDATE stock SET id = id + 100",),
    "update to null": ("UPDATE stock SET city = NULL, amount = NULL WHERE id < 3",),
    "update that changes nothing": ("UPDATE stock SET amount = amount",),
    "update of no row": ("UPDATE stock SET amount = 0 WHERE id = 77",),
    "delete": ("DELETE FROM stock WHERE id = 2",),
    "delete of all": ("DELETE FROM stock",),
    "insert and delete again": ("INSERT INTO stock VALUES (10, 'x', 1)", "DELETE FROM stock WHERE id = 10"),
    "delete and insert again": ("DELETE FROM stock WHERE id = 1", "INSERT INTO stock VALUES (1, 'Oslo', 12.50)"),
    "one row again and again": (*["UPDATE stock SET amount = amount + 1 WHERE id = 1"] * 4,),
}

AS_AT_FIRST = (
    "DELETE FROM stock",
    "INSERT INTO stock VALUES (1, 'Oslo', 12.50), (2, 'Bergen', -1.00), (3, NULL, NULL)",
)


class Fixtures:
    """An engine gives the fixture `lab`."""

    @pytest.fixture
    def source(self, lab: Lab) -> Iterator[Source]:
        source = connect(lab.url)
        yield source
        source.close()

    @pytest.fixture
    def stock(self, lab: Lab, source: Source) -> list[SourceTable]:
        """A table with a key and three rows, captured from here on."""
        lab.execute(
            "CREATE TABLE stock (id INTEGER PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))",
            AS_AT_FIRST[1],
        )
        return captured_from_here(source, "stock")

    @pytest.fixture
    def heap(self, lab: Lab, source: Source) -> list[SourceTable]:
        """A table without a key, in which a row stands twice."""
        lab.execute(
            "CREATE TABLE heap (id INTEGER, city VARCHAR(40), amount DECIMAL(12,2))",
            "INSERT INTO heap VALUES (1, 'Oslo', 12.50), (1, 'Oslo', 12.50), (NULL, NULL, NULL), (NULL, NULL, NULL)",
        )
        return captured_from_here(source, "heap")


def captured_from_here(source: Source, *names: str) -> list[SourceTable]:
    tables = source.describe(names)
    source.install(tables)
    return tables


def now(lab: Lab, table: str, columns: Sequence[str] = COLUMNS) -> Counter[Row]:
    return Counter(lab.rows(table, columns))


def ids(changes: pa.Table) -> list[int]:
    return changes.column("id").to_pylist()


def read(state: FirstState, table: SourceTable) -> Counter[Row]:
    return bag(batch for part in state.slices(table, 30) for batch in state.read(part))


def consume(source: Source, tables: Sequence[SourceTable], seen: dict[str, Counter[Row]]) -> None:
    """A round that adds what it captures to what has been seen."""
    captured = source.capture(tables)
    for table in tables:
        seen[table.name] = plus(seen[table.name], net(captured, table=table.name))
    source.acknowledge(tables, captured.taken)


def asked(
    source: Source,
    query: str,
    tables: Sequence[SourceTable],
    taken: Taken,
    shipped: dict[str, pa.Table] | None = None,
    besides: Sequence[Taken] = (),
) -> Counter[Row]:
    tree = sqlglot.parse_one(query, dialect="spark")
    assert isinstance(tree, exp.Query)
    return bag(source.evaluate(tree, tables, taken, shipped or {}, besides))
