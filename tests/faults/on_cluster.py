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
from pathlib import Path

from pyspark.sql import SparkSession

import matview

ROWS = 40_000


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


def kill_one(spark: SparkSession, known: set[int], killed: list[int], over: threading.Event) -> None:
    """As soon as a stage has been given to executors of ours; of its tasks Spark tells late, or not at all."""
    at_work = spark.sparkContext.statusTracker()
    while not at_work.getActiveStageIds():
        if over.wait(0.01):
            return
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
    killed, over = list[int](), threading.Event()
    killer = threading.Thread(target=kill_one, args=(warehouse.spark, others, killed, over))
    killer.start()
    warehouse.sql("UPDATE t SET v = length(repeat(s, 500)), s = sha2(repeat(s, 500), 512) WHERE id % 2 = 0")
    over.set()
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
        ),
        flush=True,
    )
    warehouse.spark.stop()  # or the cluster, while Java ends, goes on replacing the executor that was killed


if __name__ == "__main__":
    main(*sys.argv[1:])
