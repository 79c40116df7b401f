"""Kill -9 between any two steps of a transaction: afterwards the state is that of before or after, for everyone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import lent

import matview
from matview.settings import Settings

from .crashing import FOLDING

BEFORE = ({(1, 1), (2, 2)}, {(1, 1), (2, 2)})
AFTER = ({(1, 101), (2, 102)}, {(2, 2), (3, 3)})
STEPS = {
    "begun": BEFORE,
    "staged": BEFORE,
    "journaled": BEFORE,
    "table a": BEFORE,
    "table b": BEFORE,
    "committed": AFTER,
    "folded a": AFTER,
    "folded b": AFTER,
    "finished": AFTER,
}
CRASHING = "tests.faults.crashing"


def state(reader: Any) -> tuple[set[Any], set[Any]]:
    a, b = ({tuple(row) for row in reader.sql(f"SELECT id, v FROM {name}").collect()} for name in "ab")
    return a, b


@pytest.mark.conforms("Q17", "Q20")
@pytest.mark.parametrize("step", STEPS)
def test_killed_at(step: str, spark: Any, tmp_path: Path) -> None:
    walk_to(step, spark, tmp_path, lent.to_others(spark))


@pytest.mark.conforms("Q17", "Q20")
def test_killed_with_its_java(spark: Any, tmp_path: Path) -> None:
    walk_to("staged", spark, tmp_path, {})


def walk_to(step: str, spark: Any, tmp_path: Path, environment: dict[str, str]) -> None:
    """Another process maintains, and is killed at a step."""
    path = tmp_path / "wh"
    with matview.open(path, versions=2, spark=spark, settings=Settings(lease_wait=30.0)) as warehouse:
        warehouse.sql("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
        warehouse.sql("CREATE TABLE b (id INT PRIMARY KEY, v INT)")
        with warehouse.transaction() as tx:
            tx.sql("INSERT INTO a VALUES (1, 1), (2, 2)")
            tx.sql("INSERT INTO b VALUES (1, 1), (2, 2)")
        warehouse.sql("UPDATE a SET v = v")
        session = warehouse.session()
        crashed = subprocess.run(
            [sys.executable, "-m", CRASHING, str(path), step, "KILL"],
            capture_output=True,
            text=True,
            env=os.environ | environment,
        )
        assert crashed.returncode == -9, crashed.stderr
        assert crashed.stdout.splitlines()[-1] == step
        assert state(session) == BEFORE, "an open session, before anything is repaired"
        assert state(warehouse) == STEPS[step], "a new reader, before anything is repaired"
        warehouse.sql("CREATE TABLE c (x INT)")  # whoever takes the lease next repairs
        assert state(warehouse) == STEPS[step]
        assert state(session) == BEFORE, "the open session, after the repair"
        assert not warehouse.catalog.transactions.unfinished()
        warehouse.sql("UPDATE a SET v = 0 WHERE id = 1")
        assert (1, 0) in state(warehouse)[0]


def test_the_steps_are_all_of_them(spark: Any, tmp_path: Path) -> None:
    seen: list[str] = []
    with matview.open(tmp_path / "wh", versions=2, spark=spark, settings=FOLDING) as warehouse:
        warehouse.sql("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
        warehouse.sql("CREATE TABLE b (id INT PRIMARY KEY, v INT)")
        warehouse.sql("INSERT INTO a VALUES (1, 1), (2, 2)")
        warehouse.sql("INSERT INTO b VALUES (1, 1), (2, 2)")
        with warehouse.transaction(step=seen.append) as tx:
            tx.sql("UPDATE a SET v = v + 100")
            tx.sql("UPDATE b SET v = v + 100")
    assert list(dict.fromkeys(seen)) == list(STEPS)
