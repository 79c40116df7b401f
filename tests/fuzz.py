"""Random queries in random worlds, in two processes: `make fuzz N=20000`, or python -m tests.fuzz --cases 20000."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from tests.queries.shrink import shrunk
from tests.queries.trying import Failure, Tally, Trial, kept

CHUNK = 20
PROCESSES = 2
MOST_FAILURES = 5


def main() -> int:
    asked = _arguments()
    console = Console()
    began = time.monotonic()
    tally = _run(asked, console)
    _report(console, tally, time.monotonic() - began)
    for failure in tally.failures:
        _show(console, failure)
    return 1 if tally.failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many (query, data, change) to check")
    parser.add_argument("--seed", type=int, default=None, help="the first query's seed; by default, a new one")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after this time in any case")
    asked = parser.parse_args()
    if asked.seed is None:
        asked.seed = int(time.time()) % 1_000_000 * 1_000
    return asked


def _run(asked: argparse.Namespace, console: Console) -> Tally:
    tally, until = Tally(), time.monotonic() + asked.seconds
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress, _pool() as pool:
        task = progress.add_task(f"seed {asked.seed}", total=asked.cases)
        for made in _finished(pool, asked.seed):
            tally.add(made)
            progress.update(task, completed=min(tally.cases, asked.cases), description=_summary(asked.seed, tally))
            if tally.cases >= asked.cases or len(tally.failures) >= MOST_FAILURES or time.monotonic() > until:
                break
        pool.shutdown(cancel_futures=True)
    return tally


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"), initializer=_begin)


def _summary(seed: int, tally: Tally) -> str:
    return f"seed {seed}: {tally.refused.total()} refused, {len(tally.failures)} failed"


def _finished(pool: ProcessPoolExecutor, seed: int) -> Iterator[Tally]:
    """Tallies as they come; there is always one more chunk waiting than there are processes."""
    starts = count(seed, CHUNK)
    running: set[Future[Tally]] = {pool.submit(_chunk, next(starts)) for _ in range(PROCESSES + 1)}
    while True:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        running |= {pool.submit(_chunk, next(starts)) for _ in done}
        yield from (future.result() for future in done)


# in the processes -----------------------------------------------------------------------------------------------------

_trials: list[Trial] = []


def _begin() -> None:
    _trials.append(Trial())


def _chunk(first: int) -> Tally:
    """Some queries; a failure is made smaller where it was found."""
    tally = _trials[0].run(range(first, first + CHUNK))
    tally.failures = [shrunk(failure) for failure in tally.failures[:MOST_FAILURES]]
    return tally


# telling --------------------------------------------------------------------------------------------------------------


def _report(console: Console, tally: Tally, seconds: float) -> None:
    tried = max(tally.queries, 1)
    console.print(
        f"{tally.cases} cases of {tally.queries} queries in {seconds:.0f} s, "
        f"{tally.cases / seconds * 60:.0f} a minute; the result changed in {tally.moved / max(tally.cases, 1):.0%}, "
        f"{tally.narrowed} changes were narrowed; "
        f"{tally.refused.total() / tried:.1%} of the queries refused, "
        f"{tally.incomparable} not run by DuckDB as they are, {tally.crashed} broke it"
    )
    table = Table("operator", "how often", box=None)
    for name, times in tally.operators.most_common():
        table.add_row(name, str(times))
    console.print(table)
    for why, times in tally.refused.most_common(10):
        console.print(f"refused {times} times: {why}", markup=False)


def _show(console: Console, failure: Failure) -> None:
    path = kept(failure)
    console.rule(f"{failure.law}, seed {failure.seed}")
    console.print(f"{failure.what}\n\n{failure.sql}\n", markup=False, soft_wrap=True)
    for table, rows in failure.world.before.items():
        if rows:
            console.print(f"{table}: {json.dumps(rows)}", markup=False, soft_wrap=True)
    for table, signed in failure.world.change.items():
        console.print(f"Δ{table}: {json.dumps(signed)}", markup=False, soft_wrap=True)
    console.print(f"kept as {path}")


if __name__ == "__main__":
    sys.exit(main())
