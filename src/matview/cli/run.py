"""`matview run`: takes over changes of sources and refreshes viewgroups when they are due, until it is told to stop."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from matview.cli.durations import clock, seconds, shown
from matview.cli.interrupts import Worker
from matview.cli.opened import open_here
from matview.cli.priority import NICE, step_back
from matview.cli.report import report_error
from matview.cli.texts import say
from matview.cli.where import HERE, Where
from matview.maintain.rounds.feeder import CONTINUOUS, Fed
from matview.scheduler import Scheduler, Tried


def run(
    *,
    once: Annotated[bool, Parameter(negative="", help="Take over and refresh what is due now, then end.")] = False,
    ingest_every: Annotated[
        str | None, Parameter(help="How often sources are asked, such as '1 minute'; all the time if nothing is said.")
    ] = None,
    nice: Annotated[
        int,
        Parameter(
            validator=Number(gte=0, lte=19),
            help="How far it steps back behind readers on this machine: 0 not at all, 19 as far as can be.",
        ),
    ] = NICE,
    where: Where = HERE,
) -> int:
    """1 with `--once` if a viewgroup or a source failed."""
    every = CONTINUOUS if ingest_every is None else seconds(ingest_every)
    stop = threading.Event()
    step_back(nice)
    worker = Worker()
    if not once:
        _stop_on_signals(stop)
    with open_here(where) as warehouse:
        worker.run(warehouse.runtime.engine.start)
        scheduler = Scheduler(
            warehouse,
            _tell,
            ingest_every=every,
            tell_fed=_tell_fed,
        )
        if once:
            return int(not worker.run(scheduler.once))
        say("running; SIGTERM or Ctrl-C ends it, after the refresh that is under way")
        worker.run(lambda: scheduler.run(stop))
    say("stopped")
    return 0


def _stop_on_signals(stop: threading.Event) -> None:
    def end(number: int, _: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)


def _tell(tried: Tried) -> None:
    took = f"{_now()} {tried.group or 'all viewgroups'}"
    if tried.error is not None:
        report_error(tried.error)
        others = "; other viewgroups go on" if tried.group else ""
        say(f"{took}: failed, tried again in {shown(tried.again_in)}{others}")
    elif tried.outcome is not None and tried.outcome.version is not None:
        say(f"{took}: {tried.outcome} in {shown(tried.seconds)}")
    else:
        say(f"{took}: nothing new")


def _now() -> str:
    """By the clock of this machine: what is told may be that the catalog is away."""
    now = time.time()
    return clock(now, now)


def _tell_fed(fed: Fed) -> None:
    names = f"source {', '.join(fed.sources)}" if fed.sources else "all sources"
    took = f"{_now()} {names}"
    if fed.error is not None:
        report_error(fed.error)
        others = "; other sources go on" if fed.sources else ""
        say(f"{took}: failed, tried again in {shown(fed.again_in)}{others}")
    elif fed.installed is not None and fed.installed.outcome is not None:
        parts = fed.installed.round.parts
        rows, transactions = sum(p.rows for p in parts), sum(p.transactions for p in parts)
        what = f"{rows} changed rows of {transactions} transactions, {fed.installed.outcome}"
        say(f"{took}: {what} in {shown(fed.seconds)}")
