"""A maintenance transaction that was silent for too long finds its lease taken, and can do no harm when it wakes up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import lent

import matview
from matview.errors import MaintenanceBusy
from matview.settings import Settings

CRASHING = "tests.faults.crashing"


def state(reader: Any) -> tuple[set[Any], set[Any]]:
    a, b = ({tuple(row) for row in reader.sql(f"SELECT id, v FROM {name}").collect()} for name in "ab")
    return a, b


@pytest.mark.parametrize("step", ["staged", "journaled", "table a"])
def test_a_revived_holder_fails(step: str, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "wh"
    with matview.open(path, versions=2, spark=spark, settings=Settings(lease_wait=30.0)) as warehouse:
        warehouse.sql("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
        warehouse.sql("CREATE TABLE b (id INT PRIMARY KEY, v INT)")
        warehouse.sql("INSERT INTO a VALUES (1, 1), (2, 2)")
        warehouse.sql("INSERT INTO b VALUES (1, 1), (2, 2)")
        command = [sys.executable, "-m", CRASHING, str(path), step, "STOP"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=os.environ | lent.to_others(spark)
        ) as holder:
            assert holder.stdout is not None
            while holder.stdout.readline().strip() != step:
                pass
            os.waitpid(holder.pid, os.WUNTRACED)
            with pytest.raises(MaintenanceBusy, match="MV303"):
                warehouse.transaction(wait=0.0)
            warehouse.sql("UPDATE b SET v = 7 WHERE id = 2")  # waits until the lease has expired, repairs, commits
            expected = ({(1, 1), (2, 2)}, {(1, 1), (2, 7)})
            assert state(warehouse) == expected
            os.kill(holder.pid, signal.SIGCONT)
            left = holder.stdout.read().split()
        assert "MV304" in left, left
        assert state(warehouse) == expected
        warehouse.sql("UPDATE a SET v = 0")
        assert state(warehouse) == ({(1, 0), (2, 0)}, expected[1])
