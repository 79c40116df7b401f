"""A process that runs one maintenance transaction over two tables and stops or kills itself at a named step.

    python crashing.py WAREHOUSE STEP KILL|STOP

STEP is one of those that a transaction reports. Each step is printed as it is reached; an error is printed by its code.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from tests import lent

import matview
from matview.settings import Settings

FOLDING = Settings(fold_files=1, fold_least=1, fold_share=0.0, lease_ttl=2.0)


def main(path: str, fatal: str, how: str) -> None:
    reached: set[str] = set()

    def step(name: str) -> None:
        print(name, flush=True)
        if name == fatal and name not in reached:
            reached.add(name)
            _between_writes(path)
            os.kill(os.getpid(), signal.Signals[f"SIG{how}"])

    warehouse = matview.open(path, spark=lent.borrowed(), settings=FOLDING)
    try:
        with warehouse.transaction(step=step) as tx:
            tx.sql("UPDATE a SET v = v + 100")
            tx.sql("DELETE FROM b WHERE id = 1")
            tx.sql("INSERT INTO b VALUES (3, 3)")
    except matview.MatviewError as error:
        print(error.code, flush=True)


def _between_writes(path: str) -> None:
    """A thread keeps the lease alive: one that is stopped within its write would lock the catalog for everybody."""
    with closing(sqlite3.connect(Path(path) / "catalog.sqlite", timeout=10, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")


if __name__ == "__main__":
    main(*sys.argv[1:])
