"""The analyst who works in a process, and on a Spark, of her own. Her events come as lines of JSON.

parent                       child (python -m matview.demo.colleague)
start           ------->     starts Spark
"go"            ------->     opens the warehouse, asks every kind of query once, works
                <-------     events, one a line
closes the pipe ------->     ends
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TextIO

from matview.demo.analyst import Analyst, Habit, Tell
from matview.demo.events import Event, Failed, from_json, to_json
from matview.demo.readers import NaiveDesk, PinnedDesk, WarehouseReader
from matview.errors import MatviewError, SparkFailure
from matview.settings import Settings
from matview.spark.session import spark_session
from matview.warehouse import open_warehouse

GO = "go"
JAVA_OPTIONS = "MATVIEW_JAVA_OPTIONS"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"  # half the processor time, for two minutes
DESKS: dict[str, type[PinnedDesk | NaiveDesk]] = {"pinned": PinnedDesk, "naive": NaiveDesk}
READING = Settings(session_ttl=600.0)  # a heart that beats during a query would mix its waits with the query's


@dataclass(frozen=True, slots=True)
class Orders:
    """All that the child is told."""

    path: str
    desk: str
    habit: Habit


# the parent's side ----------------------------------------------------------------------------------------------------


class Colleague:
    """The other process, seen from here."""

    def __init__(self, orders: Orders, log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "matview.demo.colleague", json.dumps(asdict(orders))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C is for the parent to hear
                env={JAVA_OPTIONS: QUICK_JAVA, **os.environ},
            )
        self._name = orders.habit.name
        self._pump: threading.Thread | None = None
        self._ended = False

    def go(self, tell: Tell) -> None:
        """Lets her work; `tell` hears of it from a thread."""
        self._send(GO)
        self._pump = threading.Thread(target=self._listen, args=(tell,), name="colleague", daemon=True)
        self._pump.start()

    def _listen(self, tell: Tell) -> None:
        for line in self._out:
            tell(from_json(line))
        if not self._ended:
            tell(Failed(time.time(), self._name, str(self._gone())))

    def end(self, patience: float = 60.0) -> None:
        """Asks her to leave, and sees to it that she does."""
        self._ended = True
        with suppress(BrokenPipeError):  # she may have left already
            self._in.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._pump is not None:
            self._pump.join(patience)

    def _send(self, word: str) -> None:
        try:
            self._in.write(f"{word}\n")
            self._in.flush()
        except BrokenPipeError:
            raise self._gone() from None

    def _gone(self) -> SparkFailure:
        return SparkFailure(f"{self._name}'s process ended before its time", help=f"its messages are in {self._log}")

    @property
    def _in(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _out(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout


# the child's side -----------------------------------------------------------------------------------------------------


def main() -> int:
    """Works for a parent at the other end of standard input and output; leaves when the parent does."""
    orders, out = _orders(json.loads(sys.argv[1])), _own_output()
    stop = threading.Event()

    def tell(event: Event) -> None:
        print(to_json(event), file=out, flush=True)

    spark = spark_session()
    if sys.stdin.readline().strip() != GO:
        return 1
    threading.Thread(target=_until_end_of_input, args=(stop,), daemon=True).start()
    with open_warehouse(orders.path, spark=spark, create=False, settings=READING) as warehouse:
        analyst = Analyst(orders.habit, WarehouseReader(warehouse, DESKS[orders.desk]), tell, stop)
        told_if_failed(analyst.rehearse_and_work, orders.habit.name, tell)
    return 0


def told_if_failed(work: Callable[[], None], name: str, tell: Tell) -> None:
    """Works; what goes wrong is told, not raised."""
    try:
        work()
    except Exception as error:
        tell(Failed(time.time(), name, str(error) if isinstance(error, MatviewError) else repr(error)))


def _orders(fields: dict[str, object]) -> Orders:
    habit = fields["habit"]
    assert isinstance(habit, dict)
    return Orders(str(fields["path"]), str(fields["desk"]), Habit(**habit))


def _own_output() -> TextIO:
    """Standard output for events alone: whatever else is printed, by Spark's Java too, goes to the log."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _until_end_of_input(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


if __name__ == "__main__":
    sys.exit(main())
