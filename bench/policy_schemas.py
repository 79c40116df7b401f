"""The two experimental databases of paper C, section 5, and the transactions that are run against them.

The pictures of Figures 3 and 6 are not in the text. What it tells: four base tables; P-view1 and P-view2 are
projections, SPJ-view1 to SPJ-view3 select-project-joins over base tables, SPJ-view12 and SPJ-view23 over view tables;
and a linear tree over the same base tables, where each view reads the one before it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import matview

BASES = ("base1", "base2", "base3", "base4")
WIDTH = 260  # letters of padding: a tuple of some 300 bytes
OPERATIONS = 8


@dataclass(frozen=True)
class Schema:
    """Views by name, each over tables and views before it; `first` are those that read base tables only."""

    name: str
    views: dict[str, str]
    first: tuple[str, ...]
    columns: dict[str, str]
    """The column by which each view is looked up."""


def joined(left: str, right: str) -> str:
    """Rows of two base tables, about as many as each has: join columns are uniform over as many values as rows."""
    one, two = left[-1], right[-1]
    return (
        f"SELECT l.id AS id{one}, r.id AS id{two}, l.v AS v{one}, r.v AS v{two}, r.j AS j{two} "
        f"FROM {left} l JOIN {right} r ON l.j = r.h WHERE l.v >= 0 AND r.v >= 0"
    )


TREE = Schema(
    "tree",
    {
        "p_view1": "SELECT id, v, j FROM base1",
        "p_view2": "SELECT id, v, h FROM base4",
        "spj_view1": joined("base1", "base2"),
        "spj_view2": joined("base2", "base3"),
        "spj_view3": joined("base3", "base4"),
        "spj_view12": "SELECT a.id1, a.id2, b.id3, a.v1, b.v3 FROM spj_view1 a JOIN spj_view2 b ON a.id2 = b.id2",
        "spj_view23": "SELECT a.id2, a.id3, b.id4, a.v2, b.v4 FROM spj_view2 a JOIN spj_view3 b ON a.id3 = b.id3",
    },
    ("p_view1", "p_view2", "spj_view1", "spj_view2", "spj_view3"),
    {
        "p_view1": "id",
        "p_view2": "id",
        "spj_view1": "id1",
        "spj_view2": "id2",
        "spj_view3": "id3",
        "spj_view12": "id2",
        "spj_view23": "id3",
    },
)
LINEAR = Schema(
    "linear",
    {
        "l_view1": "SELECT id AS id1, v AS v1, j FROM base1 WHERE v >= 0",
        "l_view2": "SELECT id1, v1, j FROM l_view1 WHERE v1 >= 0",
        "l_view3": "SELECT l.id1, l.v1, r.id AS id2, r.j FROM l_view2 l JOIN base2 r ON l.j = r.h",
        "l_view4": "SELECT id1, id2, v1, j FROM l_view3 WHERE v1 >= 0",
        "l_view5": "SELECT l.id1, l.id2, l.v1, r.id AS id3, r.j FROM l_view4 l JOIN base3 r ON l.j = r.h",
        "l_view6": "SELECT l.id1, l.id2, l.id3, l.v1, r.id AS id4 FROM l_view5 l JOIN base4 r ON l.j = r.h",
        "l_view7": "SELECT id1, id4, v1 FROM l_view6",
    },
    ("l_view1",),
    dict.fromkeys(("l_view1", "l_view2", "l_view3", "l_view4", "l_view5", "l_view6", "l_view7"), "id1"),
)
SCHEMAS = {schema.name: schema for schema in (TREE, LINEAR)}


def load(warehouse: matview.Warehouse, rows: int) -> None:
    """Four tables of so many rows, uniform and at random."""
    for number, table in enumerate(BASES, 1):
        warehouse.sql(f"CREATE TABLE {table} (id BIGINT, h INT, j INT, v INT, pad STRING, PRIMARY KEY (id))")
        made = warehouse.spark.range(rows).selectExpr(
            "id",
            f"CAST(pmod(xxhash64(id, {number}), {rows}) AS INT) AS h",
            f"CAST(pmod(xxhash64(id, {number + 10}), {rows}) AS INT) AS j",
            f"CAST(pmod(xxhash64(id, {number + 20}), 1000) AS INT) AS v",
            f"rpad(hex(xxhash64(id, {number + 30})), {WIDTH}, '.') AS pad",
        )
        with warehouse.transaction() as tx:
            tx.insert(table, made)


Kind = Literal["insert", "remove", "replace"]


@dataclass(frozen=True, slots=True)
class Update:
    """One to eight operations of one kind on one base table."""

    table: str
    kind: Kind
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """Reads one to eight tuples of one view."""

    view: str
    seeds: tuple[int, ...]


def stream(schema: Schema, updates: int, length: int, seed: int) -> Iterator[Update | Look]:
    """So many transactions, so many of them updates; the same for every policy."""
    chance = random.Random(f"{schema.name} {updates} {seed}")
    kinds = [True] * updates + [False] * (length - updates)
    chance.shuffle(kinds)
    for is_update in kinds:
        seeds = tuple(chance.randrange(2**31) for _ in range(chance.randint(1, OPERATIONS)))
        if is_update:
            yield Update(chance.choice(BASES), chance.choice(("insert", "remove", "replace")), seeds)
        else:
            yield Look(chance.choice(list(schema.views)), seeds)


@dataclass
class Rows:
    """Which ids each base table has, so that what is removed and replaced is there."""

    rows: int
    removed: dict[str, set[int]] = field(default_factory=lambda: {table: set() for table in BASES})
    added: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BASES, 0))

    def text(self, update: Update) -> str:
        match update.kind:
            case "insert":
                values = ", ".join(self._new(update.table, seed) for seed in update.seeds)
                return f"INSERT INTO {update.table} VALUES {values}"
            case "remove":
                return f"DELETE FROM {update.table} WHERE id IN ({self._there(update, gone=True)})"
            case "replace":
                return f"UPDATE {update.table} SET v = v + 1 WHERE id IN ({self._there(update)})"

    def _new(self, table: str, seed: int) -> str:
        self.added[table] += 1
        number = self.rows + self.added[table]
        return f"({number}, {seed % self.rows}, {seed * 7 % self.rows}, {seed % 1000}, '{'.' * WIDTH}')"

    def _there(self, update: Update, gone: bool = False) -> str:
        found: dict[int, None] = {}
        for seed in update.seeds:
            number = seed % self.rows
            while number in self.removed[update.table] or number in found:
                number = (number + 1) % self.rows
            found[number] = None
        if gone:
            self.removed[update.table].update(found)
        return ", ".join(map(str, found))
