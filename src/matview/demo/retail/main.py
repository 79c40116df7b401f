"""The performance: the assignment that is wished for is refused, a legal one runs live, and every view is audited.

stores         sell and take back: transactions that immediate views follow within the same version
the counter    asks cust_returns and item_store_stock, which are always current, and has what runs short restocked
the office     asks snapshot views, which stand still until their viewgroup is refreshed
the scheduler  refreshes viewgroups when they are due
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from matview.demo.java import log_file, quiet_java
from matview.demo.place import cleared, marked, shown
from matview.demo.report import command
from matview.demo.retail.board import Board, behind, states
from matview.demo.retail.shop import TABLES, Shop, definitions
from matview.errors import BadSetting, MatviewError
from matview.plan.propose.proposal import Proposal
from matview.scheduler import Scheduler, Tried
from matview.settings import Settings
from matview.spark.session import spark_session
from matview.warehouse import Warehouse, open_warehouse

SECONDS = 25.0
SHORT_OF = 20  # so few of an item in a store trigger restocking
THINKING = 0.7
PATIENCE = 300.0
PATIENT = Settings(lease_wait=PATIENCE)  # on a machine that is busy with other things, too
OFFICE = (
    ("total_item_returns", "SELECT item, n FROM total_item_returns ORDER BY n DESC, item LIMIT 1", "item {}, {} times"),
    ("large_sales", "SELECT count(*), sum(amount) FROM large_sales", "{} sales, {} in all"),
    ("item_profits", "SELECT category, profit FROM item_profits ORDER BY profit DESC LIMIT 1", "{}: {}"),
)


@dataclass(frozen=True, slots=True)
class Audited:
    """A view at the end: where it is, what it shows, and how many rows differ from its query over that state."""

    view: str
    maintain: str
    group: str
    state: int | None
    behind: str
    rows: int
    differing: int


def run(path: str | None = None, *, seconds: float = SECONDS) -> int:
    """Plays it; 0 if the wish was refused and every view equals its query, 1 if not."""
    if not seconds > 0:
        raise BadSetting(f"the demo needs some seconds, not {seconds:g}")
    console, place, log = Console(), cleared(path), log_file()
    with console.status("Starting Spark ..."), quiet_java(log):
        spark = spark_session()
    with open_warehouse(place, spark=spark, settings=PATIENT) as warehouse, marked(place):
        refused, shop = first_act(console, warehouse), Shop()
        second_act(console, warehouse, shop, seconds)
        performance = Performance(warehouse, Board(console, seconds), shop)
        performance.run(time.monotonic() + seconds)
        good = last_act(console, warehouse, performance)
    if good:
        log.unlink()
    console.print(Text(f"The warehouse stays in {shown(place)}: {command()} status -w {shown(place)}", style="cyan"))
    return 0 if refused and good else 1


# the first act: what is wished for ------------------------------------------------------------------------------------


def first_act(console: Console, warehouse: Warehouse) -> bool:
    console.print(
        "A membership retailer keeps six views. Returns are asked for seldom and must be current, so cust_returns is "
        "to be deferred; decision support needs data that stand still, so total_item_returns, which reads it, is to "
        "be a snapshot view. Is that all right?\n"
    )
    proposal = warehouse.plan(definitions("DEFERRED"))
    for problem in proposal.problems:
        console.print(Text(str(problem.error), style="red"), soft_wrap=True)
    console.print(f"\nNothing was made: there are {len(warehouse.tables())} tables.\n", style="bold")
    return not proposal.is_legal


def second_act(console: Console, warehouse: Warehouse, shop: Shop, seconds: float) -> None:
    """The legal assignment; within so many seconds one group is refreshed three times, the other once or twice."""
    console.print("The first remedy is taken: cust_returns becomes immediate.\n")
    with console.status("The goods come in, and the first customers ..."):
        warehouse.apply(TABLES)
        with warehouse.transaction() as tx:
            for text in shop.first():
                tx.sql(text)
    with console.status("Making two viewgroups and six views, as one version ..."):
        often = max(1, round(seconds / 3))
        applied = warehouse.apply(definitions("IMMEDIATE", f"{often} seconds", f"{2 * often} seconds"))
    console.print(f"{_told(applied.proposal)}: version {applied.version}.")
    console.print(states(warehouse.viewgroups()))


def _told(proposal: Proposal) -> str:
    kinds = [step.kind for step in proposal.steps if step.action == "create"]
    counted = ((kinds.count(kind), kind) for kind in ("viewgroup", "view"))
    return ", ".join(f"{number} {kind}s" for number, kind in counted) + " made"


# the main act: live ---------------------------------------------------------------------------------------------------


@dataclass
class Performance:
    """Stores, counter, office and scheduler at work on one warehouse."""

    warehouse: Warehouse
    board: Board
    shop: Shop
    updates: list[float] = field(default_factory=list)
    queries: list[float] = field(default_factory=list)
    refreshes: list[Tried] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def run(self, deadline: float) -> None:
        """To the deadline, or as long as it takes for everybody to have had a turn."""
        office = threading.Thread(target=self._guarded, args=(self._office, deadline), name="office", daemon=True)
        keeper = threading.Thread(target=self._guarded, args=(self._schedule, deadline), name="scheduler", daemon=True)
        with self.board:
            for thread in (office, keeper):
                thread.start()
            self._guarded(self._stores, deadline)
            for thread in (office, keeper):
                thread.join()
            self.board.show(self.warehouse.viewgroups())

    def _guarded(self, work: Callable[[float], None], deadline: float) -> None:
        try:
            work(deadline)
        except MatviewError as error:
            self.failures.append(str(error))

    def _stores(self, deadline: float) -> None:
        """Sells; the first two are of each kind, so that every viewgroup has something to take over."""
        count, sales = 2, self.shop.of_each_kind()
        while True:
            took = self._timed(self.updates, partial(self.warehouse.sql, sales))
            self.board.tell("sale", f"{count} sold or brought back, both immediate views with it: {took:.2f} s")
            self._counter()
            count = self.shop.chance.randint(1, 6)
            sales = self.shop.sales(count)
            self.board.show(self.warehouse.viewgroups())
            if time.monotonic() >= deadline or self.failures:
                return

    def _counter(self) -> None:
        returns = self._ask("SELECT count(*), max(id) FROM cust_returns")
        self.board.tell("query", f"cust_returns: {returns[0][0]} returns, the last of sale {returns[0][1]}")
        least = f"SELECT item, store, stock FROM item_store_stock WHERE stock < {SHORT_OF} ORDER BY stock LIMIT 1"
        for item, store, stock in self._ask(least):
            restocking = self.shop.restocking(str(item), str(store))
            self._timed(self.updates, partial(self.warehouse.sql, restocking))
            self.board.tell("restock", f"item {item} in store {store}: {stock} were left, 100 come")

    def _office(self, deadline: float) -> None:
        turn = 0
        while turn < len(OFFICE) or time.monotonic() < deadline:
            view, text, shape = OFFICE[turn % len(OFFICE)]
            found = self._ask(text)
            said = shape.format(*found[0]) if found else "nothing yet"
            self.board.tell("query", f"{view}: {said}, as of the last refresh")
            turn += 1
            time.sleep(THINKING)

    def _schedule(self, deadline: float) -> None:
        """Groups that are due are refreshed; at the end each of them has taken something over, at least once."""
        scheduler = Scheduler(self.warehouse, self._heard)
        while True:
            scheduler.round()
            moved = {tried.group for tried in self.refreshes if _is_new(tried)}
            if self.failures or (time.monotonic() >= deadline and moved >= {"marketing", "daily"}):
                return
            if time.monotonic() >= deadline + PATIENCE:
                told = [f"{tried.group}: {tried.error}" for tried in self.refreshes if tried.error is not None]
                self.failures.append(told[-1] if told else "a viewgroup was not refreshed in time")
            time.sleep(min(0.2, scheduler.pause()))

    def _heard(self, tried: Tried) -> None:
        self.refreshes.append(tried)
        if tried.error is not None:
            self.board.tell("refresh", f"{tried.group} has to wait: {tried.error.what}")
        elif _is_new(tried):
            self.board.tell("refresh", f"{tried.group} in {tried.seconds:.1f} s")
        else:
            self.board.tell("refresh", f"{tried.group}: nothing new")

    def _ask(self, text: str) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []

        def ask() -> None:
            frame = self.warehouse.sql(text)
            assert isinstance(frame, DataFrame)
            found.extend(tuple(row) for row in frame.collect())

        self._timed(self.queries, ask)
        return found

    def _timed(self, into: list[float], work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        into.append(time.perf_counter() - began)
        return into[-1]


def _is_new(tried: Tried) -> bool:
    return tried.outcome is not None and tried.outcome.version is not None


# the last act: what every view shows ----------------------------------------------------------------------------------


def last_act(console: Console, warehouse: Warehouse, performance: Performance) -> bool:
    with console.status("Computing every view anew, over the state that it shows ..."):
        found = audited(warehouse)
    title = "Every view against its query over its effective state"
    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    for heading in ("view", "maintain", "viewgroup", "state", "behind", "rows", "differing"):
        right = heading in ("state", "rows", "differing")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for one in found:
        figures = (f"{one.rows:,}", f"{one.differing:,}")
        table.add_row(one.view, one.maintain, one.group, str(one.state), one.behind, *figures)
    console.print(table)
    done = [tried for tried in performance.refreshes if tried.error is None]
    console.print(
        f"{len(performance.updates)} updates ({_mean(performance.updates)}), {len(performance.queries)} queries "
        f"({_mean(performance.queries)}), {len(done)} refreshes of viewgroups."
    )
    differing = [one.view for one in found if one.differing]
    for failure in performance.failures:
        console.print(Text(failure, style="bold red"))
    if differing:
        console.print(Text(f"DIFFERENT: {', '.join(differing)}. This must not be.", style="bold red"))
    elif not performance.failures:
        console.print(
            Text("Every view is what its query says, of the state that its viewgroup shows.", style="bold green")
        )
    return not differing and not performance.failures


def audited(warehouse: Warehouse) -> list[Audited]:
    groups = {group.name: group for group in warehouse.viewgroups()}
    differing = warehouse.audit()
    found = []
    for view in warehouse.views():
        group = groups[view.group]
        frame = warehouse.sql(f"SELECT count(*) FROM {view.name}")
        assert isinstance(frame, DataFrame)
        rows = int(frame.collect()[0][0])
        found.append(
            Audited(view.name, view.maintain, view.group, group.state, behind(group), rows, differing[view.name])
        )
    return found


def _mean(seconds: list[float]) -> str:
    return f"{sum(seconds) / len(seconds):.2f} s each" if seconds else "none"
