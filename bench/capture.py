"""What capture costs: its users at every write, and Matview when a table is read for the first time and in a round; and
how it keeps up with small transactions. On PostgreSQL.

Run with `make bench NAME=capture`; MATVIEW_BENCH_PARTS, MATVIEW_BENCH_ROUNDS, MATVIEW_BENCH_ROWS and
MATVIEW_BENCH_SECONDS narrow it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg

import matview
from bench.capture_round import Round
from bench.postgres import VALUES, Server, server
from bench.report import Figure, console, ratio, report
from bench.stream import stream
from matview.sources import connect
from matview.sources.engine import Source
from matview.spark.session import spark_session

PARTS = os.environ.get("MATVIEW_BENCH_PARTS", "writer,load,round,stream").split(",")
ROUNDS = int(os.environ.get("MATVIEW_BENCH_ROUNDS", "15"))
ROWS = int(os.environ.get("MATVIEW_BENCH_ROWS", "5000000"))
TABLE_ROWS, BULK, TRANSACTIONS = 100_000, 20_000, 300
TABLES = ("plain", "captured", "watched")

SINGLE = {
    "insert": "INSERT INTO {table} (id, customer, city, amount) VALUES (nextval('ids'), 1, 'Oslo', 12.50);",
    "update": "\\set id random(1, {rows})\nUPDATE {table} SET amount = amount + 1 WHERE id = :id;",
    "delete and insert": "\\set id random(1, {rows})\nBEGIN;\nDELETE FROM {table} WHERE id = :id;\n"
    "INSERT INTO {table} (id, customer) VALUES (:id, 2);\nEND;",
}
BULKS = {
    "insert": "INSERT INTO {table} SELECT g, {values} FROM generate_series(10000001, 10000000 + {bulk}) AS g",
    "update": "UPDATE {table} SET amount = amount + 1 WHERE id > 10000000",
    "delete": "DELETE FROM {table} WHERE id > 10000000",
}
WATCHED = (
    "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    "CREATE TRIGGER a AFTER INSERT ON watched REFERENCING NEW TABLE AS n EXECUTE FUNCTION nothing()",
    "CREATE TRIGGER b AFTER UPDATE ON watched REFERENCING OLD TABLE AS o NEW TABLE AS n EXECUTE FUNCTION nothing()",
    "CREATE TRIGGER c AFTER DELETE ON watched REFERENCING OLD TABLE AS o EXECUTE FUNCTION nothing()",
)
"""Triggers that are given the rows and do nothing with them: what no capture by triggers can do without."""


class Bench:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.figures: list[Figure] = []
        self.details: dict[str, object] = {}

    # the writer -------------------------------------------------------------------------------------------------------

    def writer(self) -> None:
        """The same statements on two tables, one of them captured, in turns."""
        with self.server.connection() as connection:
            connection.execute("CREATE SEQUENCE ids START 1000000")
            for table in TABLES:
                self.server.fill(table, TABLE_ROWS)
            source = connect(self.server.url)
            source.install(source.describe(["captured"]))
            for statement in WATCHED:
                connection.execute(statement)
            for name, script in SINGLE.items():
                self.compared("single row", 1.6, lambda table, n=name, s=script: {n: self.single(table, n, s)})
                consume(source)
            self.compared("bulk", 2.0, lambda table: bulk(connection, table), lambda: consume(source))
            source.close()

    def single(self, table: str, name: str, script: str) -> float:
        """One client, one transaction after another; pgbench says how long one took."""
        file = self.server.scratch / f"{table}-{name.replace(' ', '-')}.sql"
        file.write_text(script.format(table=table, rows=TABLE_ROWS))
        options = ["-n", "-M", "prepared", "-t", str(TRANSACTIONS), "-f", str(file), self.server.url]
        command = [str(self.server.programs / "pgbench"), *options]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        (line,) = (line for line in answer.splitlines() if line.startswith("latency average"))
        return float(line.split()[3]) / 1000

    def compared(
        self, what: str, bar: float, run: Callable[[str], dict[str, float]], between: Callable[[], None] = lambda: None
    ) -> None:
        """Medians over rounds, in which the tables take turns, and turns at being the first."""
        seconds: dict[str, dict[str, list[float]]] = {}
        for turn in range(ROUNDS + 1):
            between()
            for table in TABLES[turn % 3 :] + TABLES[: turn % 3]:
                for name, taken in run(table).items():
                    if turn:
                        seconds.setdefault(name, {}).setdefault(table, []).append(taken)
        for name, by_table in seconds.items():
            self.details[f"{what}, {name}"] = by_table
            value, idle = ratio(by_table, "captured", "plain"), ratio(by_table, "watched", "plain")
            once = statistics.median(by_table["plain"]) * 1000
            note = f"over not captured ({once:.2f} ms); idle triggers {idle:.2f}"
            self.figures.append(Figure(f"{what}, {name}", value, bar, note))
            console.print(f"  {what}, {name}: {value:.2f}, idle {idle:.2f}")

    # the first load ---------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Against COPY to a file: into Arrow, and all the way into a warehouse."""
        self.server.fill("big", ROWS)
        with self.server.connection() as connection:
            copied = [timed(lambda: connection.execute(f"COPY big TO '{self.server.scratch}/big.txt'"))]
            read = timed(self.read)
            copied.append(timed(lambda: connection.execute(f"COPY big TO '{self.server.scratch}/big.txt'")))
            loaded = self.loaded()
            copied.append(timed(lambda: connection.execute(f"COPY big TO '{self.server.scratch}/big.txt'")))
        file = statistics.median(copied)
        memory = peak_memory()
        self.details["load"] = {"rows": ROWS, "copy": copied, "read": read, "loaded": loaded, "driver GiB": memory}
        self.figures += [
            Figure("first state into Arrow", read / file, None, f"{ROWS:,} rows, over COPY to a file ({file:.1f} s)"),
            Figure("first load", loaded / file, 4.0, "add_source, over COPY to a file"),
            Figure("driver's memory, GiB", memory, 2.0, "Python and Java together, each at its greatest"),
        ]

    # a round ----------------------------------------------------------------------------------------------------------

    def round(self) -> None:
        """Changes of three sources into a view of four tables."""
        figures, details = Round(self.server.url, self.server.scratch, ROWS // 5).figures(ROUNDS)
        self.figures += figures
        self.details["round"] = details

    def read(self) -> None:
        source = connect(self.server.url)
        tables = source.describe(["big"])
        source.install(tables)
        with source.first_state(tables) as state, ThreadPoolExecutor(2) as pool:
            counts = pool.map(lambda part: sum(b.num_rows for b in state.read(part)), state.slices(tables[0], 200_000))
            assert sum(counts) == ROWS
        source.remove(tables)
        source.close()

    def loaded(self) -> float:
        warehouse = matview.open(self.server.scratch / "wh", spark=spark_session())
        seconds = timed(lambda: warehouse.add_source("shop", self.server.url, tables=["big"]))
        count = warehouse.sql("SELECT count(*) FROM big")
        assert count is not None
        assert count.collect()[0][0] == ROWS
        warehouse.remove_source("shop", cascade=True)
        warehouse.close()
        return seconds

    # small transactions without end -----------------------------------------------------------------------------------

    def stream(self) -> None:
        figures, self.details["stream"] = stream(self.server)
        self.figures += figures


def consume(source: Source) -> None:
    """What a round does at its source: what was captured is read and deleted."""
    tables = source.describe(["captured"])
    source.acknowledge(tables, source.capture(tables).taken)


def bulk(connection: psycopg.Connection[Any], table: str) -> dict[str, float]:
    """Many rows come, change and go. To delete a row only marks it, so recording it is most of that."""
    seconds = {
        name: timed(lambda s=statement: connection.execute(s.format(table=table, values=VALUES, bulk=BULK)))
        for name, statement in BULKS.items()
    }
    return seconds | {"all three": sum(seconds.values())}


def peak_memory() -> float:
    """Of this process and its Java, in GiB."""
    of_java = subprocess.run(["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True).stdout.split()
    kilobytes = 0
    for process in ("self", *of_java):
        status = Path(f"/proc/{process}/status").read_text()
        kilobytes += int(status.partition("VmHWM:")[2].split()[0])
    return kilobytes / 2**20


def timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def main() -> None:
    with server() as started:
        bench = Bench(started)
        for part in PARTS:
            {"writer": bench.writer, "load": bench.load, "round": bench.round, "stream": bench.stream}[part]()
    report("capture", bench.figures, bench.details)


if __name__ == "__main__":
    main()
