"""The store on a cluster of separate executor processes, one of which is killed in the middle of a statement.

    python on_cluster.py WAREHOUSE

Run with MATVIEW_SPARK_MASTER=local-cluster[2,1,1024]. Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import matview

ROWS = 200_000


def executors() -> list[int]:
    """The executor processes below this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and b"java" in command.split(b"\0")[0]:
                found.append(int(entry.name))
    return found


def kill_one(known: set[int], killed: list[int]) -> None:
    """As soon as executors of ours are at work."""
    time.sleep(1.0)
    for pid in executors():
        if pid not in known:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            return


def main(path: str) -> None:
    others = set(executors())
    warehouse = matview.open(path, versions=3)
    warehouse.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s STRING)")
    warehouse.sql("CREATE TABLE g (x BIGINT)")
    warehouse.sql(f"INSERT INTO t SELECT id, 0, md5(CAST(id AS STRING)) FROM range({ROWS})")
    warehouse.sql("INSERT INTO g SELECT id % 3 FROM range(9)")
    session = warehouse.session()
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(others, killed))
    killer.start()
    warehouse.sql("UPDATE t SET v = length(repeat(s, 500)), s = sha2(repeat(s, 500), 512) WHERE id % 2 = 0")
    killer.join()
    warehouse.sql("DELETE FROM g WHERE x = 0")
    counted = "SELECT count(*), sum(v), count(DISTINCT id) FROM t"
    print(
        json.dumps(
            {
                "master": warehouse.spark.conf.get("spark.master"),
                "killed": len(killed),
                "now": list(warehouse.sql(counted).collect()[0]),
                "before": list(session.sql(counted).collect()[0]),
                "bag": [warehouse.sql("SELECT x FROM g").count(), session.sql("SELECT x FROM g").count()],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
