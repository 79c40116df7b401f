"""A process that runs one maintenance transaction over two tables and stops or kills itself at a named step.

    python crashing.py WAREHOUSE STEP KILL|STOP

STEP is one of those that a transaction reports. Each step is printed as it is reached; an error is printed by its code.
"""

from __future__ import annotations

import os
import signal
import sys

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
            os.kill(os.getpid(), signal.Signals[f"SIG{how}"])

    warehouse = matview.open(path, spark=lent.borrowed(), settings=FOLDING)
    try:
        with warehouse.transaction(step=step) as tx:
            tx.sql("UPDATE a SET v = v + 100")
            tx.sql("DELETE FROM b WHERE id = 1")
            tx.sql("INSERT INTO b VALUES (3, 3)")
    except matview.MatviewError as error:
        print(error.code, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
