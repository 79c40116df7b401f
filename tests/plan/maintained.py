"""A view as it is stored, in DuckDB: every strategy for every part of it is held against computing the part anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
from sqlglot import exp
from tests.delta.harness import Bag, Row, Signed, added, after, bag, duck_type, summed, text, weighed
from tests.queries.at_hand import rows_at_hand

from matview.algebra.nodes import WEIGHT, Change, Node, Scan, Stored
from matview.algebra.passes import normalised
from matview.algebra.schema import Schema
from matview.plan import strategies
from matview.plan.definition import Part, parts_of
from matview.plan.narrow import Values, narrowed
from matview.plan.steps import NEW, OLD, Action, Apply, Merge, Rebuild, Step
from matview.sql.lower import lower
from matview.sql.parse import parse_one
from matview.sql.render import plain_name, query

World = Mapping[str, Sequence[Row]]


class Maintained:
    """The tables of a world, and a view over them with its hidden parts."""

    def __init__(self, view: str, tables: Mapping[str, Schema]) -> None:
        node = normalised(lower(parse_one(view).query, lambda table: tables[table.name]))
        self.parts = parts_of("v", node, lambda node: node.fields)
        self._node = node
        self._tables = tables
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("PRAGMA disable_optimizer")  # for a handful of rows it costs more than it gives

    def check(self, before: World, change: Mapping[str, Signed]) -> set[str]:
        """Refreshes by every strategy that applies; gives those that did, each with the method of the part."""
        for table, schema in self._tables.items():
            self._load(table, schema, list(before.get(table, ())))
            self._load(f"Δ{table}", schema, weighed(change.get(table, ())), f", {WEIGHT} BIGINT")
        for part in self.parts:
            self._make(part.name, self._rows(part.full), part.full)
        old = {part.name: self._rows(query_of(part)) for part in self.parts}
        for table, signed in change.items():
            self._load(table, self._tables[table], after(list(before.get(table, ())), signed))
        changed, used = set(change), set()
        for part in self.parts:
            used |= self._refresh(part, changed, only_inserts=_only_inserts(change))
            self._tell(part, old[part.name], changed)
        assert self._rows(query_of(self.parts[-1])) == self._rows(self._node)
        return used

    def _refresh(self, part: Part, changed: set[str], *, only_inserts: bool) -> set[str]:
        """Each strategy from the same stored state; at the end the part is as it would be computed anew."""
        found = {
            "delta": strategies.delta(part, changed, only_inserts=only_inserts),
            "affected": strategies.affected(part, changed),
            "full": strategies.full(part),
        }
        expected = self._rows(part.full)
        for strategy, action in found.items():
            if action is not None and (part.reads & changed):
                assert self._after(part, action) == expected, f"{strategy} of {part.name}"
                step = Step(part, strategy, action)
                narrow = step.over(narrowed(step.node, self._known))
                assert self._after(part, narrow.action) == expected, f"{strategy} of {part.name}, narrowed"
                self._check_at_hand(step)
        self._make(part.name, expected, part.full)
        method = part.summary.method if part.summary else "rows"
        return {f"{strategy} {method}" for strategy, action in found.items() if action is not None}

    def _check_at_hand(self, step: Step) -> None:
        """What is computed at hand is what DuckDB computes."""
        for large in (False, True):
            found = rows_at_hand(self._connection, _name, step.node, large=large)
            assert found is None or bag(found) == self._rows(step.node), f"{step.strategy} of {step.part.name}, at hand"

    def _known(self, leaf: Change | Stored, name: str) -> Values | None:
        if isinstance(leaf, Stored):
            return None
        own = leaf.scan.columns[leaf.scan.names.index(name)]
        return frozenset(row[0] for row in self._fetch(f'SELECT DISTINCT "{own}" FROM "Δ{leaf.scan.table}"'))

    def _after(self, part: Part, action: Action) -> Bag:
        stored = bag(self._fetch(f'SELECT * FROM "{part.name}"'))
        match action:
            case Apply(change):
                signed = summed((row[-1], row[:-1]) for row in self._run(change))
                return bag_of(added(stored, signed))
            case Merge():
                return self._merged(part, action)
            case Rebuild(rows):
                return bag(self._run(rows))

    def _merged(self, part: Part, action: Merge) -> Bag:
        """Stored rows whose key is met are replaced, or go."""
        keys = " AND ".join(f'n."{k}" IS NOT DISTINCT FROM m."{k}"' for k in part.schema.key)
        rows = text(action.rows)
        values = ", ".join(f"{_sql(value)} AS v{i}" for i, (_, value) in enumerate(action.values))
        met = f'({rows}) n LEFT JOIN "{part.name}" m ON {keys}'
        new = self._fetch(f"SELECT {values}, {_sql(action.gone)} FROM {met}")
        kept = f'SELECT m.* FROM "{part.name}" m WHERE NOT EXISTS (SELECT 1 FROM ({rows}) n WHERE {keys})'
        assert tuple(name for name, _ in action.values) == part.schema.names
        return bag([row[:-1] for row in new if not row[-1]]) + bag(self._fetch(kept))

    def _tell(self, part: Part, old: Bag, changed: set[str]) -> None:
        """How the part changed is told to those that read it."""
        new = self._rows(query_of(part))
        signed = summed([*((-n, row) for row, n in old.items()), *((n, row) for row, n in new.items())])
        names = ", ".join(f'"{c}"' for c in part.schema.visible)
        self._fetch(
            f'CREATE OR REPLACE TABLE "Δ{part.name}" AS SELECT {names}, 0 AS {WEIGHT} FROM "{part.name}" LIMIT 0'
        )
        self._insert(f"Δ{part.name}", [(*row, weight) for row, weight in signed.items()])
        if signed:
            changed.add(part.name)

    def _make(self, name: str, rows: Bag, like: Node) -> None:
        self._fetch(f'CREATE OR REPLACE TABLE "{name}" AS {query(like).sql("duckdb")} LIMIT 0')
        self._insert(name, list(rows.elements()))

    def _load(self, name: str, schema: Schema, rows: list[Row], beside: str = "") -> None:
        columns = ", ".join(f'"{c.name}" {duck_type(c.type)}' for c in schema.columns)
        self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" ({columns}{beside})')
        self._insert(name, rows)

    def _insert(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            marks = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
            self._connection.execute(f'INSERT INTO "{name}" VALUES {marks}', [value for row in rows for value in row])

    def _fetch(self, text: str) -> list[Row]:
        return self._connection.execute(text).fetchall()

    def _rows(self, node: Node) -> Bag:
        return bag(self._run(node))

    def _run(self, node: Node) -> list[Row]:
        return self._fetch(text(node))


def query_of(part: Part) -> Node:
    """What queries see of a part, read from what is stored."""
    columns = part.schema.visible
    return Scan(part.name, columns, tuple(part.node.field(name) for name in columns))


def _name(leaf: Scan | Change | Stored) -> exp.Table:
    return plain_name(leaf)


def _only_inserts(change: Mapping[str, Signed]) -> bool:
    return all(weight > 0 for signed in change.values() for weight, _ in signed)


def _sql(value: exp.Expr) -> str:
    short = {NEW: "n", OLD: "m"}

    def place(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table in short:
            return exp.column(node.this.copy(), table=short[node.table])
        return node

    return value.copy().transform(place).sql("duckdb")


def bag_of(signed: Mapping[Row, int]) -> Bag:
    assert all(weight > 0 for weight in signed.values()), signed
    return bag(row for row, n in signed.items() for _ in range(n))
