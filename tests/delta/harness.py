"""The oracle: a query computed anew from the new tables is what it was before and its change together.

DuckDB runs all of it, through the rendered text.
"""

from __future__ import annotations

import atexit
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import count
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Node, Scan, tables
from matview.algebra.scalars import column
from matview.algebra.schema import Field
from matview.delta import change
from matview.sql.render import query
from matview.versions.text import foreign_text

Row = tuple[Any, ...]
Bag = Counter[Row]
Signed = Sequence[tuple[int, Row]]
"""Rows with weights as they come, not net."""

MOST_PLANS = 8

TABLES: Mapping[str, Mapping[str, str]] = {
    "r": {"a": "int", "b": "int"},
    "s": {"c": "int", "d": "int"},
    "t": {"e": "int", "f": "int"},
    "w": {"k": "int", "xs": "array<int>"},
}
"""The tables of cases written by hand: the types of their columns."""


@dataclass(frozen=True)
class Case:
    """A query, the tables before, how they change, and how the result changes, net."""

    name: str
    query: Node
    before: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    change: Mapping[str, Signed] = field(default_factory=dict)
    expected: Mapping[Row, int] = field(default_factory=dict)


# nodes ----------------------------------------------------------------------------------------------------------------


def scan(table: str, suffix: str = "") -> Scan:
    """A table, its columns called as they are, or with a suffix at a second use."""
    columns = TABLES[table]
    return Scan(table, tuple(columns), tuple(Field(name + suffix, kind) for name, kind in columns.items()))


def scalar(text: str) -> exp.Expr:
    """An expression over bare columns."""
    parsed = sqlglot.parse_one(text, dialect="spark")
    return parsed.transform(lambda node: column(node.name) if isinstance(node, exp.Column) else node)


def outputs(**texts: str) -> tuple[tuple[str, exp.Expr], ...]:
    """Names and expressions of a projection, of aggregates or of window functions."""
    return tuple((name, scalar(text)) for name, text in texts.items())


def ordered(*texts: str) -> tuple[exp.Expr, ...]:
    """The order of a top-k, nulls as Spark has them."""
    parsed = sqlglot.parse_one(f"SELECT 1 ORDER BY {', '.join(texts)}", dialect="spark")
    bare = parsed.transform(lambda node: column(node.name) if isinstance(node, exp.Column) else node)
    return tuple(bare.args["order"].expressions)


# bags -----------------------------------------------------------------------------------------------------------------


def bag(rows: Iterable[Sequence[Any]]) -> Bag:
    return Counter(tuple(map(_hashable, row)) for row in rows)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def summed(signed: Iterable[tuple[int, Row]]) -> dict[Row, int]:
    """Net: at most one entry per distinct row, none of weight 0."""
    total: Bag = Counter()
    for weight, row in signed:
        total[tuple(map(_hashable, row))] += weight
    return {row: weight for row, weight in total.items() if weight}


def added(rows: Mapping[Row, int], signed: Mapping[Row, int]) -> dict[Row, int]:
    """The sum of two signed bags, net."""
    return summed((weight, row) for part in (rows, signed) for row, weight in part.items())


# DuckDB ---------------------------------------------------------------------------------------------------------------


class Duck:
    """Tables and their changes (`Δ` before the name) in a database of their own."""

    def __init__(self, schemas: Mapping[str, Mapping[str, str]]) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.execute("PRAGMA disable_optimizer")  # for a handful of rows it costs more than it gives
        self.connection.execute("SET enable_progress_bar = false")
        self._plans: dict[str, str] = {}
        self._numbers = count(1)
        for table, columns in schemas.items():
            typed = [f'"{name}" {duck_type(kind)}' for name, kind in columns.items()]
            self.connection.execute(f'CREATE TABLE "{table}" ({", ".join(typed)})')
            self.connection.execute(f'CREATE TABLE "Δ{table}" ({", ".join([*typed, f"{WEIGHT} BIGINT"])})')

    def load(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """These tables have these rows and no others."""
        texts = [text for table, given in rows.items() for text in _filling(table, given)]
        self.connection.execute(f"BEGIN; {''.join(texts)}COMMIT")

    def rows(self, text: str) -> list[Row]:
        """Texts come again and again over other rows, so they are planned once: that takes longer than to run them."""
        if text not in self._plans:
            if len(self._plans) == MOST_PLANS:
                self.connection.execute(f"DEALLOCATE {self._plans.pop(next(iter(self._plans)))}")
            name = f"plan_{next(self._numbers)}"
            self.connection.execute(f"PREPARE {name} AS {text}")
            self._plans[text] = name
        return self.connection.execute(f"EXECUTE {self._plans[text]}").fetchall()

    def fetch(self, text: str) -> list[Row]:
        """As `rows`, for a text that comes once."""
        return self.connection.execute(text).fetchall()

    def bag(self, node: Node) -> Bag:
        return bag(self.rows(text(node)))

    def signed(self, node: Node) -> dict[Row, int]:
        """A node whose last column is the weight."""
        return summed((row[-1], row[:-1]) for row in self.rows(text(node)))


def weighed(signed: Signed) -> list[Row]:
    """The rows of a change as its table has them: the weight is the last column."""
    return [(*row, weight) for weight, row in signed]


def _filling(table: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f'DELETE FROM "{table}"; '
    if rows:
        yield f'INSERT INTO "{table}" VALUES {", ".join(map(literal, rows))}; '


@lru_cache(512)
def text(node: Node) -> str:
    return foreign_text(query(node), "duckdb")


@lru_cache(64)
def derived(node: Node, changed: frozenset[str]) -> Node | None:
    return change(node, changed)


@cache
def duck_type(kind: str) -> str:
    return exp.DataType.build(kind, dialect="spark").sql("duckdb")


def literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case tuple():
            return f"({', '.join(map(literal, value))})"
        case list():
            return f"[{', '.join(map(literal, value))}]"
    return str(value)


# the law --------------------------------------------------------------------------------------------------------------


def after(before: Sequence[Row], signed: Signed) -> list[Row]:
    """A table's rows after a change; the change of a table never takes away what is not there."""
    left, rows = summed(signed), list(before)
    for row, weight in left.items():
        given = next((r for _, r in signed if tuple(map(_hashable, r)) == row), row)
        for _ in range(-weight):
            rows.remove(given)
        rows.extend([given] * weight)
    return rows


def law(duck: Duck, node: Node, before: Mapping[str, Sequence[Row]], signed: Mapping[str, Signed]) -> dict[Row, int]:
    """Q(new) = Q(old) + change; gives the change, net. Tables that are not named are left as they are."""
    duck.load(before)
    old = duck.bag(node)
    duck.load({table: after(before[table], rows) for table, rows in signed.items()})
    duck.load({f"Δ{table}": weighed(rows) for table, rows in signed.items()})
    new = duck.bag(node)
    expression = derived(node, frozenset(signed))
    delta = {} if expression is None else _checked(duck, node, expression)
    assert added(old, delta) == dict(new), (dict(old), delta, dict(new))
    return delta


def _checked(duck: Duck, node: Node, expression: Node) -> dict[Row, int]:
    assert expression.names == (*node.names, WEIGHT)
    return duck.signed(expression)


# cases written by hand ------------------------------------------------------------------------------------------------


def check(case: Case) -> None:
    """The case forth, and back again with changes that are not net."""
    duck = shared()
    before = {table: list(case.before.get(table, ())) for table in {*tables(case.query), *case.change}}
    assert law(duck, case.query, before, case.change) == dict(case.expected)
    new = {table: after(rows, case.change.get(table, ())) for table, rows in before.items()}
    back = {table: [(-weight, row) for weight, row in rows] for table, rows in case.change.items()}
    undone = {row: -weight for row, weight in case.expected.items()}
    assert law(duck, case.query, new, _noisy(new, back)) == undone


@cache
def shared() -> Duck:
    """One database for all cases written by hand."""
    return Duck(TABLES)


atexit.register(shared.cache_clear)  # DuckDB complains of what is left at the very end


def _noisy(before: Mapping[str, Sequence[Row]], signed: Mapping[str, Signed]) -> dict[str, Signed]:
    """The same change, with rows that come and go again: one of the table's own, one of the change, one of neither."""
    noisy = {}
    for table, rows in signed.items():
        strange = tuple([9] if kind.startswith("array") else 9 for kind in TABLES[table].values())
        passing = [strange, *before[table][:1], *(row for _, row in rows[:1])]
        noisy[table] = [*((-1, row) for row in passing), *rows, *((1, row) for row in passing)]
    return noisy
