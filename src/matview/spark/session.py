"""The Spark session: the caller's, or a local one that is quiet, starts fast and is tuned for small refreshes."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from matview.machine import GIB, cores, memory
from matview.spark.archive import archive_options
from matview.spark.cache import cache_dir
from matview.spark.java import find_java, shim_home

NEEDED = {
    "spark.sql.ansi.enabled": "true",  # an overflow or a bad cast is an error, not a null
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # what Delta prescribes
    "spark.sql.variable.substitute": "false",  # a text with ${...} in it is that text
}
ADAPTIVE = "spark.sql.adaptive.enabled"
CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
OWN = "spark.matview.own"  # a session that was made here, and may be tuned
_ELSEWHERE = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT")  # Connect, or under spark-submit
_starting = threading.Lock()
_turning = threading.Lock()


def spark_session(given: SparkSession | None = None) -> SparkSession:
    """The session given; else the one this process has; else a new local one. On a session that is not ours only
    what right answers need is set, and, while changes are planned, what lets that end."""
    with _starting:
        session = given or running() or _start()
    for name, value in NEEDED.items():
        session.conf.set(name, value)
    return session


def running() -> SparkSession | None:
    """The session that this process has."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


@contextmanager
def turned_off(session: SparkSession, setting: str) -> Iterator[None]:
    """Until the last of those who want it so has ended. How many they are, and what was set before, the session itself
    remembers: several warehouses may share it."""
    noted = f"spark.matview.off.{setting}"
    with _turning:
        wanting, before = _noted(session, noted) or (0, session.conf.get(setting, None))
        session.conf.set(setting, "false")
        session.conf.set(noted, json.dumps([wanting + 1, before]))
    try:
        yield
    finally:
        with _turning:
            wanting, before = _noted(session, noted) or (1, None)
            if wanting > 1:
                session.conf.set(noted, json.dumps([wanting - 1, before]))
            else:
                session.conf.unset(noted)
                session.conf.unset(setting) if before is None else session.conf.set(setting, before)


def _noted(session: SparkSession, name: str) -> tuple[int, str | None] | None:
    found = session.conf.get(name, None)
    if found is None:
        return None
    wanting, before = json.loads(found)
    return wanting, before


def _start() -> SparkSession:
    if any(name in os.environ for name in _ELSEWHERE):
        return SparkSession.builder.getOrCreate()
    java, cache = find_java(), cache_dir()
    options = ["-Xlog:disable", *archive_options(java, cache), *shlex.split(os.environ.get("MATVIEW_JAVA_OPTIONS", ""))]
    builder = SparkSession.builder.master(os.environ.get("MATVIEW_SPARK_MASTER", "local[*]")).appName("matview")
    for name, value in local_settings(options).items():
        builder = builder.config(name, value)
    with _launching(JAVA_HOME=str(shim_home(java, cache))):
        return builder.getOrCreate()


def local_settings(java_options: list[str]) -> dict[str, str]:
    """The settings of a local Spark; all of them can be read in docs/ARCHITECTURE.md, with their reasons."""
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    warehouse = Path(tempfile.gettempdir(), f"matview-spark-{os.getpid()}")  # made only if a managed table is
    return NEEDED | {
        "spark.driver.extraJavaOptions": shlex.join([f"-Dlog4j2.configurationFile={log4j}", *java_options]),
        "spark.driver.memory": f"{driver_memory_gib()}g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        ADAPTIVE: "true",
        OWN: "true",
        "spark.sql.shuffle.partitions": str(cores()),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": warehouse.as_uri(),
    }


def driver_memory_gib() -> int:
    """A quarter of the memory there is, between 1 and 8 GiB."""
    return max(1, min(8, memory() // 4 // GIB))


@contextmanager
def _launching(**environment: str) -> Iterator[None]:
    """The environment in which the JVM starts; the process's own is as before when it runs."""
    wanted = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    before = {name: os.environ.get(name) for name in (*wanted, *environment)}
    os.environ.update(wanted | environment)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", category=FutureWarning, module="pyspark"
            )  # about pandas, which we don't use
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
