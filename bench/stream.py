"""Small transactions without end while rounds run: how far the warehouse is behind, and whether a writer waits for it.

Two writers do the same at the same time, one on a table that is captured, one on a table that is not: what the machine
is busy with, both feel. A write that waits for a lock longer than 50 ms is told by the server itself.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from matplotlib import pyplot

import matview
from bench.postgres import Server
from bench.report import RESULTS, Figure, console
from matview.scheduler import Scheduler
from matview.spark.session import spark_session

SECONDS = float(os.environ.get("MATVIEW_BENCH_SECONDS", "300"))
A_SECOND = 200
ROWS = 20_000
LONGEST_WAIT = 0.05
TABLES = ("captured_stream", "control_stream")
VIEW = (
    "CREATE MATERIALIZED VIEW by_city MAINTAIN IMMEDIATE AS "
    "SELECT city, count(*) AS n, sum(amount) AS total FROM captured_stream GROUP BY city"
)
WRITER = "import sys; from bench.stream import write; write(sys.argv[1], sys.argv[2], float(sys.argv[3]))"


def write(url: str, table: str, seconds: float) -> None:
    """In a process of its own: transactions of two or three statements, at their times; prints how long each took."""
    taken = []
    with psycopg.connect(url, autocommit=True, application_name=table) as connection:
        began = time.monotonic()
        for number in range(int(seconds * A_SECOND)):
            time.sleep(max(0.0, began + number / A_SECOND - time.monotonic()))
            at, row = time.monotonic(), ROWS + 1 + number
            with connection.transaction():
                values = (row, f"city {number % 100}", number % 1000)
                connection.execute(
                    f"INSERT INTO {table} (id, customer, city, amount) VALUES (%s, 1, %s, %s)", values, prepare=True
                )
                connection.execute(f"UPDATE {table} SET amount = amount + 1 WHERE id = %s", [row - 500], prepare=True)
                if number % 10 == 0:
                    connection.execute(f"DELETE FROM {table} WHERE id = %s", [row - ROWS], prepare=True)
            taken.append((round(at - began, 4), round(time.monotonic() - at, 6)))
    print(json.dumps(taken))


@dataclass(frozen=True)
class Moment:
    """How far the warehouse was behind at a time, in seconds and rows."""

    at: float
    lag: float
    rows: int


def stream(server: Server) -> tuple[list[Figure], dict[str, object]]:
    waits_told = {"log_lock_waits": "on", "deadlock_timeout": f"{LONGEST_WAIT * 1000:.0f}ms", "log_line_prefix": "%a "}
    server.set(waits_told)
    for table in TABLES:
        server.fill(table, ROWS)
    warehouse = matview.open(server.scratch / "stream.wh", spark=spark_session())
    warehouse.add_source("shop", server.url, tables=[TABLES[0]])
    warehouse.sql(VIEW)
    installed: list[Any] = []
    scheduler, stop = Scheduler(warehouse, tell_fed=installed.append), threading.Event()
    rounds = threading.Thread(target=scheduler.run, args=(stop,), name="rounds")
    rounds.start()
    warmed_up(server, installed)
    said = server.log.stat().st_size
    moments, latencies = watched(server, warehouse)
    while warehouse.sources(ask=True)[0].waiting_rows:
        time.sleep(0.2)
    stop.set()
    rounds.join()
    waits = lock_waits(server.log, said)
    equal = is_equal(server, warehouse)
    warehouse.close()
    picture(moments)
    fed = [one for one in installed if one.installed is not None]
    failed = [str(one.error) for one in installed if one.error is not None]
    slowest = {table: sorted((taken for _, taken in found), reverse=True)[:20] for table, found in latencies.items()}
    details: dict[str, object] = {
        "seconds": SECONDS,
        "slowest writes": slowest,
        "rounds": len(fed),
        "failures": failed,
        "lock waits": waits,
        "equal": equal,
        "lag": [(one.at, one.lag, one.rows) for one in moments],
    }
    return figures(moments, latencies, waits, equal), details


def warmed_up(server: Server, installed: Sequence[object]) -> None:
    """The first rounds compile code."""
    with server.connection() as connection:
        for number in range(5):
            before = len(installed)
            connection.execute(f"UPDATE {TABLES[0]} SET amount = amount WHERE id = {number + 1}")
            while len(installed) == before:
                time.sleep(0.05)


def watched(server: Server, warehouse: matview.Warehouse) -> tuple[list[Moment], dict[str, list[tuple[float, float]]]]:
    """Both writers to their end, and the lag meanwhile."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    commands = {table: [sys.executable, "-c", WRITER, server.url, table, str(SECONDS)] for table in TABLES}
    writers = {
        table: subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for table, command in commands.items()
    }
    began, moments = time.monotonic(), list[Moment]()
    with ThreadPoolExecutor() as pool:
        answers = {table: pool.submit(process.communicate) for table, process in writers.items()}
        while not all(answer.done() for answer in answers.values()):
            (status,) = warehouse.sources(ask=True)
            moments.append(Moment(time.monotonic() - began, status.lag or 0.0, status.waiting_rows or 0))
            time.sleep(0.5)
    return moments, {table: json.loads(answer.result()[0]) for table, answer in answers.items()}


def lock_waits(log: Path, since: int) -> list[str]:
    """What the server has said of a writer that waited for a lock."""
    with log.open() as lines:
        lines.seek(since)
        return [line.strip() for line in lines if line.startswith(TABLES[0]) and "still waiting for" in line]


def is_equal(server: Server, warehouse: matview.Warehouse) -> bool:
    """The view is its query's answer, and the replica what the source has."""
    ask = "SELECT count(*), sum(id), sum(amount), sum(customer) FROM captured_stream"
    with server.connection() as connection:
        there = connection.execute(ask).fetchone()
    here = warehouse.sql(ask)
    assert here is not None
    return set(warehouse.audit().values()) == {0} and tuple(here.collect()[0]) == there


def figures(
    moments: Sequence[Moment], latencies: dict[str, list[tuple[float, float]]], waits: Sequence[str], equal: bool
) -> list[Figure]:
    third = len(moments) // 3
    lags = [one.lag for one in moments]
    growth = max(lags[-third:]) / max(max(lags[:third]), 0.001)
    captured, control = (sorted(taken for _, taken in latencies[table]) for table in TABLES)
    thousandth = -1 - len(captured) // 1000
    slowest = captured[thousandth] / control[thousandth]
    note = f"{captured[thousandth] * 1000:.0f} and {control[thousandth] * 1000:.0f} ms; at most {captured[-1]:.2f} and "
    usual = statistics.median(captured)
    console.print(f"  lag {statistics.median(lags):.1f} s, at most {max(lags):.1f} s; equal: {equal}")
    return [
        Figure("stream: lag, s", statistics.median(lags), None, f"{A_SECOND} transactions a second, {SECONDS:.0f} s"),
        Figure("stream: longest lag, s", max(lags)),
        Figure("stream: longest lag, last third over first", growth, 1.5, "bounded: it does not grow"),
        Figure("stream: writes that waited > 50 ms for a lock", float(len(waits)), 0.0, "as the server tells it"),
        Figure(
            "stream: a write, captured over not", usual / statistics.median(control), None, f"{usual * 1000:.1f} ms"
        ),
        Figure("stream: the slowest of 1,000, captured over not", slowest, None, f"{note}{control[-1]:.2f} s"),
        Figure("stream: view or replica differs", float(not equal), 0.0, "from its recomputation, at the end"),
    ]


def picture(moments: Sequence[Moment]) -> None:
    RESULTS.mkdir(exist_ok=True)
    drawing, axes = pyplot.subplots(figsize=(9, 3))
    axes.plot([one.at for one in moments], [one.lag for one in moments], color="#2e86c1")
    axes.set_xlabel("seconds")
    axes.set_ylabel("lag, seconds")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{A_SECOND} small transactions a second, rounds without end")
    drawing.tight_layout()
    drawing.savefig(RESULTS / "capture-lag.png", dpi=120)
    pyplot.close(drawing)
