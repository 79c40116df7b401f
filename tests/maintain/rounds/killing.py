"""A process whose children run rounds, each killed with -9 just before its durable write of a certain number.

    a line to it:    {"path": WAREHOUSE, "number": 7}, or {..., "step": "computed"}: at a step that rounds report
    a line from it:  {"killed": true, "writes": ["catalog", "file", ...]}

It borrows the Spark of the test run, and its children are forked: none of them waits for anything. What they leave
is in the warehouse, in its catalog and at the source, as with any other process that is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
from tests import lent

import matview
from matview.catalog.store import Store
from matview.sources.sqlite.connect import Database
from matview.storage.delta import DeltaFiles
from matview.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_FOLDING = matview.Settings(fold_files=1_000_000)
"""Folding has steps of its own, which tests/faults walks through."""
BY_THE_CLOCK = ("matview-lease", "matview-heart")
"""Threads that write whenever it is time: all others are part of a round."""
Reached = Callable[[str], None]


class Killer:
    """That process, from outside."""

    def __init__(self, spark: SparkSession) -> None:
        environment = os.environ | lent.to_others(spark) | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command, pipe = [sys.executable, "-m", "tests.maintain.rounds.killing"], subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def run(self, path: str, number: int) -> tuple[bool, list[str]]:
        """A round in a child; whether it was killed, and the writes that it had begun."""
        answer = self._asked(path=path, number=number)
        return answer["killed"], answer["writes"]

    def at(self, path: str, step: str) -> None:
        """A round in a child that is killed at a step."""
        assert self._asked(path=path, step=step)["killed"], step

    def _asked(self, **what: object) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


def let_go(warehouse: matview.Warehouse) -> None:
    """The lease of a process that is gone runs out; nobody wants to wait for that."""
    lease = warehouse.catalog.lease.current()
    if lease is not None:
        warehouse.catalog.lease.release(lease)


def main() -> None:
    spark = lent.borrowed()
    for line in sys.stdin:
        asked = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            run(spark, writing, **asked)
        os.close(writing)
        with os.fdopen(reading) as told:
            writes = told.read().split()
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        assert ended in (0, -signal.SIGKILL), ended
        print(json.dumps({"killed": ended != 0, "writes": writes}), flush=True)


def run(spark: Any, told: int, path: str, number: int = 0, step: str = "") -> None:
    """One round; it never returns. Whoever comes to a write while another is counted waits, and is killed with it."""
    writes, turn = 0, threading.Lock()

    def reached(kind: str) -> None:
        nonlocal writes
        if threading.current_thread().name in BY_THE_CLOCK:
            return
        with turn:
            writes += 1
            os.write(told, f"{kind}\n".encode())
            if writes == number:
                os.kill(os.getpid(), signal.SIGKILL)

    def stepped(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        warehouse = matview.open(path, spark=spark, settings=NOT_FOLDING)
        before_each_write(reached)
        warehouse.ingest(step=stepped)
        os._exit(0)
    finally:
        os._exit(1)


def before_each_write(reached: Reached) -> None:
    """Whatever outlives the process: the catalog, files, Delta logs, and what is deleted at the source."""

    def inside(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def worked(given: Any) -> Any:
            done = work(given)
            reached("catalog")
            return done

        return worked

    write_once, output = Store._write_once, Files._output
    Store._write_once = lambda self, work: write_once(self, inside(work))  # type: ignore[method-assign]

    def opened(self: Files, path: str) -> Any:
        stream = output(self, path)
        reached("file")
        return stream

    Files._output = opened  # type: ignore[method-assign]
    for where, name in ((Files, "move"), (Files, "delete"), (Files, "delete_dir"), (DeltaFiles, "_write")):
        setattr(where, name, before(getattr(where, name), lambda *_, kind=name: reached(kind.strip("_"))))
    Database.writing = before(Database.writing, lambda *_: reached("source"))  # type: ignore[method-assign]

    def deleting(_: object, statement: object, *__: object) -> None:
        if str(statement).startswith("DELETE"):
            reached("source")

    psycopg.Connection.execute = before(psycopg.Connection.execute, deleting)  # type: ignore[method-assign]


def before(function: Callable[..., Any], told: Callable[..., None]) -> Callable[..., Any]:
    def called(*args: Any, **options: Any) -> Any:
        told(*args)
        return function(*args, **options)

    return called


if __name__ == "__main__":
    main()
