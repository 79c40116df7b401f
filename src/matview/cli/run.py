"""`matview run`: takes over changes of sources and refreshes viewgroups when they are due, until it is told to stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Annotated

from cyclopts import Parameter

from matview.cli.durations import clock, seconds, shown
from matview.cli.opened import open_here
from matview.cli.report import report_error
from matview.cli.texts import say
from matview.cli.where import HERE, Where
from matview.maintain.rounds.feeder import CONTINUOUS, Fed
from matview.scheduler import Scheduler, Tried
from matview.warehouse import Warehouse


def run(
    *,
    once: Annotated[bool, Parameter(negative="", help="Take over and refresh what is due now, then end.")] = False,
    ingest_every: Annotated[
        str | None, Parameter(help="How often sources are asked, such as '1 minute'; all the time if nothing is said.")
    ] = None,
    where: Where = HERE,
) -> int:
    """1 with `--once` if a viewgroup or a source failed."""
    every = CONTINUOUS if ingest_every is None else seconds(ingest_every)
    stop = threading.Event()
    with open_here(where) as warehouse:
        warehouse.runtime.engine.start()
        scheduler = Scheduler(
            warehouse,
            lambda tried: _tell(warehouse, tried),
            ingest_every=every,
            tell_fed=lambda fed: _tell_fed(warehouse, fed),
        )
        if once:
            return int(not scheduler.once())
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


def _tell_fed(warehouse: Warehouse, fed: Fed) -> None:
    now = warehouse.catalog.now()
    names = f"source {', '.join(fed.sources)}" if fed.sources else "sources"
    took = f"{clock(now, now)} {names}"
    if fed.error is not None:
        report_error(fed.error)
        say(f"{took}: failed, tried again in {shown(fed.again_in)}; other sources go on")
    elif fed.installed is not None and fed.installed.outcome is not None:
        parts = fed.installed.round.parts
        rows, transactions = sum(p.rows for p in parts), sum(p.transactions for p in parts)
        what = f"{rows} changed rows of {transactions} transactions, {fed.installed.outcome}"
        say(f"{took}: {what} in {shown(fed.seconds)}")
