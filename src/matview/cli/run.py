"""`matview run`: refreshes viewgroups when they are due, until it is told to stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Annotated

from cyclopts import Parameter

from matview.cli.durations import clock, shown
from matview.cli.opened import open_here
from matview.cli.report import report_error
from matview.cli.texts import say
from matview.cli.where import HERE, Where
from matview.scheduler import Scheduler, Tried
from matview.warehouse import Warehouse


def run(
    *,
    once: Annotated[bool, Parameter(negative="", help="Refresh what is due now, then end.")] = False,
    where: Where = HERE,
) -> int:
    """1 with `--once` if a viewgroup failed."""
    stop = threading.Event()
    with open_here(where) as warehouse:
        warehouse.runtime.engine.start()
        scheduler = Scheduler(warehouse, lambda tried: _tell(warehouse, tried))
        if once:
            return int(any(tried.error is not None for tried in scheduler.round()))
        _stop_on_signals(stop)
        say("running; SIGTERM or Ctrl-C ends it, after the refresh that is under way")
        scheduler.run(stop)
    say("stopped")
    return 0


def _stop_on_signals(stop: threading.Event) -> None:
    def end(number: int, _: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)


def _tell(warehouse: Warehouse, tried: Tried) -> None:
    now = warehouse.catalog.now()
    took = f"{clock(now, now)} {tried.group}"
    if tried.error is not None:
        report_error(tried.error)
        say(f"{took}: failed, tried again in {shown(tried.again_in)}; other viewgroups go on")
    elif tried.outcome is not None and tried.outcome.version is not None:
        say(f"{took}: {tried.outcome} in {shown(tried.seconds)}")
    else:
        say(f"{took}: nothing new")
