"""The policy comparison of paper C: Figure 5 on the schemas of Figures 3 and 6, and what logs add to an update (5.4).

Run with `make bench NAME=policies`. Streams are as long as MATVIEW_BENCH_MINUTES (19) allow, which is measured first,
and at most 200 (the paper: 1,000); MATVIEW_BENCH_TRANSACTIONS says how long instead. Snapshots are refreshed after the
same shares of a stream as after 15, 30 and 60 of 200. The two schemas run side by side, each in a process of its own.
MATVIEW_BENCH_ROWS, _RATIOS, _POLICIES, _VIEWS, _ROUNDS and _PARTS narrow it further.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from typing import TypeVar

from matplotlib import pyplot
from rich.table import Table

import matview
from bench.policy_findings import Curves, Observation, Point, observations
from bench.policy_schemas import SCHEMAS, Look, Rows, Schema, load, stream
from bench.report import RESULTS, Figure, console, report
from matview.spark.session import spark_session

TRANSACTIONS = int(os.environ.get("MATVIEW_BENCH_TRANSACTIONS", "0"))
MINUTES = float(os.environ.get("MATVIEW_BENCH_MINUTES", "19"))
LEAST, MOST, WARM = 10, 200, 12
ROWS = int(os.environ.get("MATVIEW_BENCH_ROWS", "100000"))
RATIOS = [float(r) for r in os.environ.get("MATVIEW_BENCH_RATIOS", "0,0.05,0.1,0.25,0.5,0.75,0.9,0.95,1").split(",")]
PARTS = os.environ.get("MATVIEW_BENCH_PARTS", "log,tree,linear").split(",")
PAPER = {"snapshot 15": 15, "snapshot 30": 30, "snapshot 60": 60}
"""Snapshot policies, named after the transactions between refreshes in a stream of 200."""
POLICIES = os.environ.get(
    "MATVIEW_BENCH_POLICIES", "immediate,deferred,combined,snapshot 15,snapshot 30,snapshot 60,never"
)
LOGGED = [int(n) for n in os.environ.get("MATVIEW_BENCH_VIEWS", "0,1,2,3,4,5,6,7,50").split(",")]
AT_ONCE = (0, 1, 3, 7)
ROUNDS = int(os.environ.get("MATVIEW_BENCH_ROUNDS", "12"))
SEED = 1997
T = TypeVar("T")


@dataclass(frozen=True)
class Policy:
    """How the views of a schema are maintained, and after how many of 200 transactions snapshots are, if ever."""

    name: str
    of_first: str
    of_others: str
    period: int | None = None

    def every(self, length: int) -> int | None:
        return None if self.period is None else max(1, round(self.period * length / MOST))

    def alter(self, warehouse: matview.Warehouse, schema: Schema) -> None:
        with warehouse.transaction() as tx:
            for view in schema.views:
                maintain = self.of_first if view in schema.first else self.of_others
                if maintain != "SNAPSHOT":
                    tx.sql(f"ALTER MATERIALIZED VIEW {view} SET MAINTAIN {maintain}")


def policies() -> list[Policy]:
    known = {
        "immediate": Policy("immediate", "IMMEDIATE", "IMMEDIATE"),
        "deferred": Policy("deferred", "DEFERRED", "DEFERRED"),
        "combined": Policy("combined", "IMMEDIATE", "DEFERRED"),
        "never": Policy("never", "SNAPSHOT", "SNAPSHOT"),
    }
    for name, period in PAPER.items():
        known[name] = Policy(name, "SNAPSHOT", "SNAPSHOT", period)
    return [known[name.strip()] for name in POLICIES.split(",")]


class Bench:
    """`began`: when all of it did, by the clock on the wall; `measured`: met by all who measure at once, after that."""

    def __init__(self, root: Path, began: float, measured: Barrier) -> None:
        self.root = root
        self.began = began
        self.measured = measured
        self.figures: list[Figure] = []
        self.details: dict[str, object] = {"rows": ROWS, "ratios": RATIOS}
        self.spark = spark_session()
        self.copies = 0
        with self.open(root / "base") as warehouse:
            seconds = timed(lambda: load(warehouse, ROWS))
        console.print(f"  four tables of {ROWS:,} rows loaded in {seconds:.0f} s")

    def open(self, place: Path) -> matview.Warehouse:
        return matview.open(place, spark=self.spark, settings=matview.Settings(lease_ttl=600.0))

    def copy(self, of: Path) -> Path:
        self.copies += 1
        return Path(shutil.copytree(of, self.root / f"copy-{self.copies}"))

    # Figure 5 ---------------------------------------------------------------------------------------------------------

    def tree(self) -> None:
        self.compare(SCHEMAS["tree"])

    def linear(self) -> None:
        self.compare(SCHEMAS["linear"])

    def compare(self, schema: Schema) -> None:
        began = time.perf_counter()
        loaded = self.copy(self.root / "base")
        with self.open(loaded) as warehouse, warehouse.transaction() as tx:
            tx.sql("CREATE VIEWGROUP all_views REFRESH ON DEMAND")
            for name, text in schema.views.items():
                tx.sql(f"CREATE MATERIALIZED VIEW {name} IN VIEWGROUP all_views MAINTAIN SNAPSHOT AS {text}")
        console.print(f"  seven views made in {time.perf_counter() - began:.0f} s")
        contest = [Contender(policy, self.open(self.copy(loaded)), schema) for policy in policies()]
        length = TRANSACTIONS or self.length(contest)
        curves: Curves = {contender.policy.name: {} for contender in contest}
        for turn, updates in enumerate(dict.fromkeys(round(ratio * length) for ratio in RATIOS)):
            for contender in turned(contest, turn):
                point = contender.run(updates, length, SEED)
                curves[contender.policy.name][updates / length] = point
                console.print(f"  {schema.name}, {contender.policy.name}, {updates} of {length}: {told(point)}")
        seconds = time.perf_counter() - began
        self.measured.wait()
        for contender in contest:
            contender.end()
        self.tell(schema, curves, observations(curves, list(PAPER)), length, seconds)

    def length(self, contest: Sequence[Contender]) -> int:
        """As many transactions a stream as the time that is left allows; to measure that warms everything up, too."""
        seconds = 0.0
        for contender in contest:
            contender.run(WARM // 2, WARM, SEED + 1)
            point = contender.run(WARM // 2, WARM, SEED + 2)
            seconds += sum(ratio * (point.update or 0) + (1 - ratio) * (point.query or 0) for ratio in RATIOS)
            seconds += len(RATIOS) * contender.refreshing / WARM
        left = MINUTES * 60 - (time.time() - self.began)
        found = min(MOST, max(LEAST, int(left / seconds)))
        console.print(f"  a transaction at every point takes {seconds:.0f} s: {found} a point")
        return found

    def tell(self, schema: Schema, curves: Curves, found: Sequence[Observation], length: int, seconds: float) -> None:
        title = f"{schema.name}: Figure 5, {length} transactions a point, in {seconds / 60:.1f} min"
        table = Table(title=title)
        for heading in ("graph", "the paper says", "here", "measured"):
            table.add_column(heading)
        for one in found:
            table.add_row(one.graph, one.said, "[green]holds[/]" if one.holds else "[red]does not[/]", one.measured)
        console.print(table)
        self.details[schema.name] = {
            "transactions": length,
            "seconds": seconds,
            "curves": {p: {f"{r:.3f}": asdict(point) for r, point in line.items()} for p, line in curves.items()},
            "observations": [asdict(one) for one in found],
        }
        held = sum(one.holds for one in found)
        note = f"of {len(found)}; {length} transactions a point, {seconds / 60:.1f} min"
        self.figures.append(Figure(f"{schema.name}: observations that hold", held, None, note))
        draw(schema, curves, found, length)

    # 5.4 --------------------------------------------------------------------------------------------------------------

    def log(self) -> None:
        """What an update costs beside so many views that wait, and beside so many that do not."""
        waiting = self.updates("DEFERRED", LOGGED)
        few = {n: seconds for n, seconds in waiting.items() if n <= 7}
        note = ", ".join(f"{n}: {1000 * s:.0f} ms" for n, s in waiting.items())
        extremes = {n: waiting[n] for n in (0, 7, 50) if n in waiting}
        self.add("update beside 0, 7 and 50 deferred views, most / least", spread(extremes), 1.1, note)
        self.add("update beside 0 to 7 deferred views, most / least", spread(few), 1.1)
        at_once = self.updates("IMMEDIATE", [n for n in AT_ONCE if n <= max(LOGGED)])
        line = statistics.correlation(list(at_once), list(at_once.values())) ** 2
        note = ", ".join(f"{n}: {1000 * s:.0f} ms" for n, s in at_once.items())
        self.add(
            "update beside 7 immediate views / beside none", at_once[7] / at_once[0], None, f"{note}; r² {line:.2f}"
        )
        self.details["log"] = {"deferred": waiting, "immediate": at_once}

    def updates(self, maintain: str, numbers: Sequence[int]) -> dict[int, float]:
        """The median of updates of one table, in turns among warehouses with so many views of it."""
        places, growing = {}, self.copy(self.root / "base")
        for before, number in zip((0, *numbers), numbers, strict=False):
            with self.open(growing) as warehouse, warehouse.transaction() as tx:
                for view in range(before, number):
                    text = f"SELECT id, v, j FROM base1 WHERE v >= {10 * view % 500}"
                    tx.sql(f"CREATE MATERIALIZED VIEW w{view} MAINTAIN {maintain} AS {text}")
            places[number] = self.copy(growing)
        opened = {number: self.open(place) for number, place in places.items()}
        seconds: dict[int, list[float]] = {number: [] for number in numbers}
        for turn in range(ROUNDS + 3):
            for number in turned(numbers, turn):
                ids = ", ".join(str((turn * 97 + k * 1009) % ROWS) for k in range(4))
                took = timed(lambda n=number, i=ids: opened[n].sql(f"UPDATE base1 SET v = v + 1 WHERE id IN ({i})"))
                if turn >= 3:
                    seconds[number].append(took)
        for number, warehouse in opened.items():
            warehouse.close()
            shutil.rmtree(places[number])
        return {number: statistics.median(found) for number, found in seconds.items()}

    def add(self, name: str, value: float, bar: float | None = None, note: str = "") -> None:
        self.figures.append(Figure(name, value, bar, note))
        console.print(f"  {name}: {value:.3f}" + ("" if bar is None else f" (bar {bar:g})") + f"  {note}")


class Contender:
    """A warehouse whose views have one policy; streams are run against it one after another."""

    def __init__(self, policy: Policy, warehouse: matview.Warehouse, schema: Schema) -> None:
        self.policy = policy
        self.warehouse = warehouse
        self.schema = schema
        self.rows = Rows(ROWS)
        self.refreshing = 0.0
        policy.alter(warehouse, schema)

    def run(self, updates: int, length: int, seed: int) -> Point:
        """One stream; views are up to date when it begins."""
        self.warehouse.refresh(*self.schema.views)
        first = self.warehouse.catalog.version().current_vn
        changing: list[float] = []
        asking: list[float] = []
        self.refreshing = 0.0
        every = self.policy.every(length)
        for number, transaction in enumerate(stream(self.schema, updates, length, seed), 1):
            if isinstance(transaction, Look):
                asking.append(timed(lambda look=transaction: self.look(look)))
            else:
                text = self.rows.text(transaction)
                changing.append(timed(lambda text=text: self.warehouse.sql(text)))
            if every and number % every == 0:
                self.refreshing += timed(lambda: self.warehouse.refresh("all_views"))
        done = [record for record in self.warehouse.refreshes(100_000) if record.vn > first]
        elapsed = sum(changing) + sum(asking) + self.refreshing
        return Point(elapsed, len(done), mean(changing), mean(asking))

    def look(self, look: Look) -> None:
        ids = ", ".join(str(seed % ROWS) for seed in look.seeds)
        asked = f"SELECT * FROM {look.view} WHERE {self.schema.columns[look.view]} IN ({ids})"
        found = self.warehouse.sql(asked)
        assert not isinstance(found, matview.Outcome)
        found.collect()

    def end(self) -> None:
        """Whatever was measured counts only if every view is what its query says."""
        wrong = {view: n for view, n in self.warehouse.audit().items() if n}
        assert not wrong, f"{self.policy.name}: views that differ from their queries: {wrong}"
        self.warehouse.close()
        shutil.rmtree(self.warehouse.path)


def turned(things: Sequence[T], turn: int) -> list[T]:
    """In another order each time, so that no one always comes after the same other."""
    place = turn % len(things)
    found = [*things[place:], *things[:place]]
    return found if turn % 2 else found[::-1]


def spread(seconds: dict[int, float]) -> float:
    return max(seconds.values()) / min(seconds.values())


def mean(seconds: list[float]) -> float | None:
    return statistics.fmean(seconds) if seconds else None


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def told(point: Point) -> str:
    update = "" if point.update is None else f", update {point.update:.2f} s"
    query = "" if point.query is None else f", query {point.query:.2f} s"
    return f"{point.elapsed:.1f} s, {point.refreshes} refreshes{update}{query}"


GRAPHS: dict[str, tuple[str, str, Callable[[Point], float | None]]] = {
    "a": ("elapsed time", "seconds", lambda point: point.elapsed),
    "b": ("refreshes of views", "number", lambda point: float(point.refreshes)),
    "c": ("an update", "seconds", lambda point: point.update),
    "d": ("a query", "seconds", lambda point: point.query),
}


def draw(schema: Schema, curves: Curves, found: Sequence[Observation], length: int) -> None:
    """The four graphs of Figure 5; under each, what the paper says of it and whether that holds."""
    figure, axes = pyplot.subplots(2, 2, figsize=(15, 13))
    for axis, (letter, (title, unit, value)) in zip(axes.flat, GRAPHS.items(), strict=True):
        for policy, line in curves.items():
            points = {ratio: v for ratio, point in line.items() if (v := value(point)) is not None}
            axis.plot(list(points), list(points.values()), "o-", label=policy, markersize=3)
        axis.set(title=f"({letter}) {title}", xlabel="update ratio", ylabel=unit)
        lines = [f"{'holds' if o.holds else 'NOT HERE'}: {o.said} ({o.measured})" for o in found if o.graph == letter]
        text = "\n".join(line if len(line) <= 130 else f"{line[:129]}…" for line in lines)
        axis.text(0, -0.14, text, transform=axis.transAxes, fontsize=7, verticalalignment="top")
    axes[0][0].legend(fontsize=8)
    figure.suptitle(f"{schema.name}: {length} transactions a point, base tables of {ROWS:,} rows")
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"policies-{schema.name}.png", dpi=110)
    pyplot.close(figure)


def run(part: str, began: float, measured: Barrier) -> tuple[list[Figure], dict[str, object]]:
    with tempfile.TemporaryDirectory(prefix="matview-bench-") as directory:
        console.print(f"[b]{part}[/]")
        bench = Bench(Path(directory), began, measured)
        try:
            getattr(bench, part)()
        except BaseException:
            measured.abort()  # nobody waits for this one
            raise
    return bench.figures, bench.details


def main() -> None:
    """What logs add is measured on a quiet machine, before the schemas have it to themselves."""
    began = time.time()
    figures: list[Figure] = []
    details: dict[str, object] = {}
    for parts in ([part for part in PARTS if part not in SCHEMAS], [part for part in PARTS if part in SCHEMAS]):
        context, together = get_context("spawn"), len(parts) or 1
        with context.Manager() as manager, ProcessPoolExecutor(together, context) as processes:
            measured = manager.Barrier(together)
            for found, told_more in processes.map(run, parts, repeat(began), repeat(measured)):
                figures += found
                details |= told_more
    details["minutes"] = (time.time() - began) / 60
    report("policies", figures, details)


if __name__ == "__main__":
    main()
