"""Random histories of maintenance transactions, with a model that says what every version must look like.

The model keeps, per version, the rows of a keyed table `k(id, a, b)` and of a bag `g(x, y)`; and, for the keyed table,
every tuple by the paper's tables (`versions.decide`), so that the stored slots can be compared one by one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from matview.errors import AmbiguousMerge, DuplicateKey, MatviewError
from matview.maintain.transaction import MaintenanceTransaction
from matview.versions import decide
from matview.versions.decide import Held
from matview.versions.tuples import VersionedTuple

Row = tuple[Any, ...]
IDS = 12
STRINGS = (None, "x", "y", "it's", "{z}")
NUMBERS = (None, 0, 1, 2, 3, 100, 200)  # far apart, so that files differ in their bounds


@dataclass
class State:
    keyed: dict[int, Row] = field(default_factory=dict)
    bag: Counter[Row] = field(default_factory=Counter)

    def copy(self) -> State:
        return State(dict(self.keyed), Counter(self.bag))


@dataclass
class Model:
    """`working` is the state inside the open transaction; `held` its tuples, touched or not."""

    versions: int
    current: int = 1
    states: dict[int, State] = field(default_factory=lambda: {1: State()})
    stored: dict[int, VersionedTuple] = field(default_factory=dict)
    working: State = field(default_factory=State)
    held: dict[int, Held] = field(default_factory=dict)
    vn: int = 0

    def begin(self, vn: int) -> None:
        self.vn, self.working = vn, self.states[self.current].copy()
        self.held = {key: Held.of(stored) for key, stored in self.stored.items()}

    def commit(self, version: int) -> None:
        self.current = version
        self.states[version] = self.working.copy()
        self.stored = {key: held.now for key, held in self.held.items() if held.now is not None}

    def put(self, key: int, row: Row) -> None:
        """Insert or update, by the tables."""
        held = self.held.get(key, Held(None, None))
        if key in self.working.keyed:
            self.held[key] = decide.update(held, row, self.vn)
        else:
            self.held[key] = decide.insert(held, (key,), row, self.vn, self.versions - 1)
        self.working.keyed[key] = row

    def remove(self, key: int) -> None:
        self.held[key] = decide.delete(self.held[key], self.vn)
        del self.working.keyed[key]


Statement = Callable[[MaintenanceTransaction], object]


class Generator:
    """Draws statements that are possible in the model's state, and carries them out there; or impossible ones, which
    must be refused and change nothing."""

    def __init__(self, seed: int, model: Model, spark: Any) -> None:
        self.random = random.Random(seed)
        self.model = model
        self.spark = spark

    def statement(self) -> Statement:
        kinds = [
            self.insert, self.update, self.delete, self.merge, self.apply, self.delete_rows, self.rekey,
            self.bag_insert, self.bag_insert, self.bag_update, self.bag_delete, self.bag_apply, self.bag_merge,
            self.insert_twice, self.merge_twice, self.bag_merge_twice,
        ]  # fmt: skip
        return self.random.choice(kinds)()

    def _value(self) -> int | None:
        return self.random.choice(NUMBERS)

    def _row(self) -> Row:
        return self._value(), self.random.choice(STRINGS)

    def _free(self) -> list[int]:
        return [i for i in range(IDS) if i not in self.model.working.keyed]

    def insert(self) -> Statement:
        keys = self.random.sample(self._free(), min(len(self._free()), self.random.randint(0, 4)))
        rows = {key: self._row() for key in keys}
        for key, row in rows.items():
            self.model.put(key, row)
        frame = self.spark.createDataFrame([(k, *r) for k, r in rows.items()], "id INT, a INT, b STRING")
        if not rows or self.random.random() < 0.3:
            return lambda tx: tx.insert("k", frame)
        values = ", ".join(f"({k}, {sql(a)}, {sql(b)})" for k, (a, b) in rows.items())
        return lambda tx: tx.sql(f"INSERT INTO k VALUES {values}")

    def update(self) -> Statement:
        step, rest, value = self.random.randint(1, 4), self.random.randint(0, 3), self._value()
        for key, (_, b) in list(self.model.working.keyed.items()):
            if key % step == rest % step:
                self.model.put(key, (value, b))
        return lambda tx: tx.sql(f"UPDATE k SET a = {sql(value)} WHERE id % {step} = {rest % step}")

    def delete(self) -> Statement:
        least = self.random.randint(0, IDS)
        for key in [key for key in self.model.working.keyed if key >= least]:
            self.model.remove(key)
        return lambda tx: tx.sql(f"DELETE FROM k WHERE id >= {least}")

    def merge(self) -> Statement:
        source = {key: self._row() for key in self.random.sample(range(IDS), self.random.randint(1, 6))}
        for key, (a, b) in source.items():
            if key not in self.model.working.keyed:
                self.model.put(key, (a, b))
            elif a is None:
                self.model.remove(key)
            elif self.model.working.keyed[key] != (a, b):
                self.model.put(key, (a, b))
        rows = " UNION ALL ".join(
            f"SELECT {k} AS id, INT({sql(a)}) AS a, STRING({sql(b)}) AS b" for k, (a, b) in source.items()
        )
        text = (
            f"MERGE INTO k AS t USING ({rows}) AS s ON t.id = s.id WHEN MATCHED AND s.a IS NULL THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        return lambda tx: tx.sql(text)

    def apply(self) -> Statement:
        changes: list[Row] = []
        for key in self.random.sample(range(IDS), 4):
            old, new = self.model.working.keyed.get(key), self._row()
            if old == new:
                continue
            if old is not None:
                changes.append((key, *old, -1))
            if old is None or self.random.random() < 0.6:
                changes.append((key, *new, 1))
                self.model.put(key, new)
            else:
                self.model.remove(key)
        frame = self.spark.createDataFrame(changes, "id INT, a INT, b STRING, weight INT")
        return lambda tx: tx.apply("k", frame)

    def delete_rows(self) -> Statement:
        there = sorted(self.model.working.keyed)
        keys = self.random.sample(there, min(2, len(there)))
        for key in keys:
            self.model.remove(key)
        frame = self.spark.createDataFrame([(key,) for key in keys], "id INT")
        return lambda tx: tx.delete("k", frame)

    def rekey(self) -> Statement:
        """The rows of two keys change places: an update of the key is a delete and an insert, netted per key."""
        one, other = self.random.sample(range(IDS), 2)
        rows = self.model.working.keyed
        moved = {b: rows[a] for a, b in ((one, other), (other, one)) if a in rows}
        for key in (one, other):
            if key in moved and rows.get(key) != moved[key]:
                self.model.put(key, moved[key])
            elif key not in moved and key in rows:
                self.model.remove(key)
        text = f"UPDATE k SET id = CASE id WHEN {one} THEN {other} ELSE {one} END WHERE id IN ({one}, {other})"
        return lambda tx: tx.sql(text)

    def insert_twice(self) -> Statement:
        """A key stands twice among the rows to insert: one that was deleted before, if there is any, or a new one."""
        gone = [key for key in self._free() if key in self.model.held]
        keys = self.random.sample(gone or self._free(), min(len(gone or self._free()), 2))
        rows = [(key, *self._row()) for key in (*keys, *keys[:1])]
        self.random.shuffle(rows)
        return _refused("INSERT INTO k VALUES", rows, "", DuplicateKey) if keys else self.insert()

    def merge_twice(self) -> Statement:
        """The source meets a row twice; one of the rows, or both, may be as the stored one is."""
        there = sorted(self.model.working.keyed)
        if not there:
            return self.merge()
        key = self.random.choice(there)
        old = self.model.working.keyed[key]
        rows = [(key, *self.random.choice([old, self._row()])) for _ in range(2)]
        clauses = self.random.choice(["UPDATE SET a = s.a, b = s.b", "DELETE"])
        text = f") AS s(id, a, b) ON t.id = s.id WHEN MATCHED THEN {clauses}"
        return _refused("MERGE INTO k AS t USING (VALUES", rows, text, AmbiguousMerge)

    def bag_merge_twice(self) -> Statement:
        there = list(self.model.working.bag)
        if not there:
            return self.bag_insert()
        x, y = self.random.choice(there)
        rows = [(x, y, self.random.choice([y, *STRINGS])) for _ in range(2)]
        text = ") AS s(x, y, z) ON t.x <=> s.x AND t.y <=> s.y WHEN MATCHED THEN UPDATE SET y = s.z"
        return _refused("MERGE INTO g AS t USING (VALUES", rows, text, AmbiguousMerge)

    def bag_merge(self) -> Statement:
        """All rows with a number get a text; a number that none has comes with it."""
        bag, number, text = self.model.working.bag, self._value(), self.random.choice(STRINGS)
        met = {row: count for row, count in bag.items() if row[0] == number}
        self.model.working.bag = Counter({row: count for row, count in bag.items() if row not in met})
        self.model.working.bag[(number, text)] += sum(met.values()) or 1
        source = f"(SELECT INT({sql(number)}) AS x, STRING({sql(text)}) AS y) AS s"
        clauses = "WHEN MATCHED THEN UPDATE SET y = s.y WHEN NOT MATCHED THEN INSERT *"
        return lambda tx: tx.sql(f"MERGE INTO g AS t USING {source} ON t.x <=> s.x {clauses}")

    def bag_insert(self) -> Statement:
        rows = [self._row() for _ in range(self.random.randint(1, 4))]
        self.model.working.bag.update(rows)
        values = ", ".join(f"({sql(x)}, {sql(y)})" for x, y in rows)
        return lambda tx: tx.sql(f"INSERT INTO g VALUES {values}")

    def bag_update(self) -> Statement:
        before, after = self._value(), self._value()
        bag = self.model.working.bag
        for (x, y), count in list(bag.items()):
            if x == before and x != after:
                bag[(after, y)] += count
                del bag[(x, y)]
        return lambda tx: tx.sql(f"UPDATE g SET x = {sql(after)} WHERE x <=> {sql(before)}")

    def bag_delete(self) -> Statement:
        value = self.random.choice(STRINGS)
        for row in [row for row in self.model.working.bag if row[1] == value]:
            del self.model.working.bag[row]
        return lambda tx: tx.sql(f"DELETE FROM g WHERE y <=> {sql(value)}")

    def bag_apply(self) -> Statement:
        bag = self.model.working.bag
        changes = [
            (*row, -self.random.randint(1, count)) for row, count in list(bag.items()) if self.random.random() < 0.3
        ]
        changes += [(*self._row(), self.random.randint(1, 3)) for _ in range(2)]
        for x, y, weight in changes:
            bag[(x, y)] += weight
        self.model.working.bag = Counter({row: count for row, count in bag.items() if count})
        frame = self.spark.createDataFrame(changes, "x INT, y STRING, weight INT")
        return lambda tx: tx.apply("g", frame)


def _refused(before: str, rows: list[Row], after: str, error: type[MatviewError]) -> Statement:
    values = ", ".join(f"({', '.join(map(sql, row))})" for row in rows)

    def run(tx: MaintenanceTransaction) -> None:
        with pytest.raises(error):
            tx.sql(f"{before} {values}{after}")

    return run


def sql(value: object) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "\\'") + "'" if isinstance(value, str) else str(value)
