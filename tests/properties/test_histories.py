"""Whatever maintenance does, every session reads the one state that its version had, and the slots are the paper's."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

import matview
from matview import Settings
from matview.errors import SessionExpired
from matview.maintain.change import meeting
from matview.storage import few as few_rows
from matview.versions.tuples import Operation

from .histories import IDS, NUMBERS, STRINGS, Generator, Model, State, sql

# folds and merges after nearly every transaction, files removed at once
EAGER = Settings(fold_files=2, fold_least=4, fold_share=0.2, file_retention=0.0)


@pytest.mark.conforms("Q3", "Q4", "Q5", "Q6", "Q7", "Q10", "Q11", "Q12", "Q16")
@pytest.mark.parametrize(("seed", "versions", "rounds", "few"), [(1, 2, 9, 5000), (2, 3, 9, 2), (3, 5, 9, 5000)])
def test_every_session_reads_its_version(
    seed: int, versions: int, rounds: int, few: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "FEW_ROWS", few)
    monkeypatch.setattr(meeting, "LONGEST_LIST", seed % 2)
    with matview.open(tmp_path / "wh", versions=versions, spark=spark, settings=EAGER) as warehouse:
        History(warehouse, seed, versions).run(rounds)


class History:
    def __init__(self, warehouse: matview.Warehouse, seed: int, versions: int) -> None:
        self.warehouse = warehouse
        self.random = random.Random(seed)
        warehouse.sql("CREATE TABLE k (id INT PRIMARY KEY, a INT, b STRING)")
        warehouse.sql("CREATE TABLE g (x INT, y STRING)")
        self.model = Model(versions, current=3, states={3: State()})
        self.generator = Generator(seed, self.model, warehouse.spark)
        self.sessions: list[matview.ReaderSession] = []

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self.sessions.append(self.warehouse.session(grain=self.random.choice(["tuple", "table"])))
            self.transact()
            for session in list(self.sessions):
                self.check_session(session)
            if self.random.random() < 0.3:
                self.warehouse.gc()
                self.forget_collected()
            self.check_slots()

    def transact(self) -> None:
        keep = self.random.random() > 0.15
        with self.warehouse.transaction() as tx:
            self.model.begin(tx.version)
            for _ in range(self.random.randint(1, 3)):
                self.generator.statement()(tx)
            assert_few(self.model.working, tx, self.random)
            assert_state(self.model.working, tx)
            if not keep:
                tx.rollback()
                return
            outcome = tx.commit()
        if outcome.version is not None:
            self.model.commit(outcome.version)

    def check_session(self, session: matview.ReaderSession) -> None:
        try:
            assert_few(self.model.states[session.version], session, self.random)
            assert_state(self.model.states[session.version], session)
        except (SessionExpired, PySparkException) as error:
            if SessionExpired.code not in str(error):  # at the grain of tuples Spark raises it, inside the query
                raise
            overlapped = self.model.current - session.version
            assert overlapped > self.model.versions - 1, f"expired after {overlapped} transactions"
            self.sessions.remove(session)

    def stored(self) -> dict[int, Any]:
        return {row["id"]: row for row in self.warehouse.versions("k").collect()}

    def check_once(self, table: str, *names: str) -> None:
        """What names a tuple is stored once."""
        stored = Counter(tuple(row[name] for name in names) for row in self.warehouse.versions(table).collect())
        assert max(stored.values(), default=1) == 1, stored

    def forget_collected(self) -> None:
        """Deleted tuples that were collected are gone from the model, too; nothing else may be gone."""
        there = self.stored()
        for key in [key for key in self.model.stored if key not in there]:
            assert self.model.stored[key].newest.operation is Operation.DELETE
            del self.model.stored[key]

    def check_slots(self) -> None:
        self.check_once("k", "id")
        self.check_once("g", "x", "y")
        self.forget_collected()  # folding leaves out what nobody needs
        there = self.stored()
        assert set(there) == set(self.model.stored)
        for key, expected in self.model.stored.items():
            assert slots_of(there[key], self.model.versions) == [
                (s.vn, s.operation.name.lower(), s.pre or (None, None)) for s in expected.slots
            ], key
            assert (there[key]["a"], there[key]["b"]) == expected.current


def slots_of(row: Any, versions: int) -> list[tuple[int, str, tuple[object, ...]]]:
    found = []
    for i in range(1, versions):
        end = "" if versions == 2 else f"_{i}"
        if row[f"tuple_vn{end}"] is not None:
            found.append((row[f"tuple_vn{end}"], row[f"operation{end}"], (row[f"pre_a{end}"], row[f"pre_b{end}"])))
    return found


def assert_few(expected: State, reader: Any, random: random.Random) -> None:
    """What constants lead to, by columns that updates change and by others."""
    ids, a, b = random.sample(range(IDS), 3), random.choice(NUMBERS), random.choice(STRINGS)
    asked = {
        f"id IN ({', '.join(map(str, ids))})": lambda row: row[0] in ids,
        f"id = {ids[0]} AND a > 0": lambda row: row[0] == ids[0] and (row[1] or 0) > 0,
        f"a = {sql(a)}": lambda row: a is not None and row[1] == a,
        f"{sql(b)} = b": lambda row: b is not None and row[2] == b,
    }
    condition, holds = random.choice(list(asked.items()))
    keyed = Counter(tuple(row) for row in reader.sql(f"SELECT * FROM k WHERE {condition}").collect())
    assert keyed == Counter(row for i, rest in expected.keyed.items() if holds(row := (i, *rest))), condition
    bag = Counter(tuple(row) for row in reader.sql(f"SELECT y, x FROM g WHERE x = {sql(a)}").collect())
    assert bag == Counter({(y, x): n for (x, y), n in expected.bag.items() if n and x is not None and x == a})


def assert_state(expected: State, reader: Any) -> None:
    keyed = sorted(tuple(row) for row in reader.sql("SELECT id, a, b FROM k").collect())
    key = lambda row: (row[0], str(row))  # noqa: E731
    assert sorted(keyed, key=key) == sorted(((i, *row) for i, row in expected.keyed.items()), key=key)
    assert Counter(tuple(row) for row in reader.sql("SELECT x, y FROM g").collect()) == +expected.bag
