"""What refreshing views costs: by each strategy and share of change, against computing anew; one row; five together.

On TPC-H at scale factor 1. Run with `make bench NAME=refresh`; MATVIEW_BENCH_SCALE, _PARTS,
_SHARES, _TIMES and _STREAMS (with semicolons between them) narrow it.
"""

from __future__ import annotations

import math
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from matplotlib import pyplot

import matview
from bench import tpch
from bench.orders import Kind, Orders
from bench.report import RESULTS, Figure, console, ratio, report
from matview.spark.session import spark_session

SCALE = float(os.environ.get("MATVIEW_BENCH_SCALE", "1"))
PARTS = os.environ.get("MATVIEW_BENCH_PARTS", "small,together,curve,kinds").split(",")
SHARES = [float(s) for s in os.environ.get("MATVIEW_BENCH_SHARES", "0.0001,0.001,0.01,0.05,0.2,0.5").split(",")]
KEYS = {
    "customer": "c_custkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}
JOINED = "customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey"
VIEWS = {
    "jv1": "SELECT c_custkey, c_acctbal, o_orderkey, o_totalprice FROM orders, customer WHERE c_custkey = o_custkey",
    "jv2": f"SELECT c_custkey, c_acctbal, o_orderkey, o_totalprice, l_discount, l_extendedprice FROM {JOINED}",
    "summary": f"SELECT c_nationkey, o_orderdate, sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS n "
    f"FROM {JOINED} GROUP BY c_nationkey, o_orderdate",
    "top": "SELECT c_custkey, c_name, sum(o_totalprice) AS total FROM customer, orders WHERE c_custkey = o_custkey "
    "GROUP BY c_custkey, c_name ORDER BY total DESC LIMIT 100",
    "parts": "SELECT DISTINCT l_partkey, l_suppkey FROM lineitem",
}
STRATEGIES = ("delta", "affected", "full")
TIMES = int(os.environ.get("MATVIEW_BENCH_TIMES", "3"))
MOST_TIMES = 7
"""Of what takes less than a second."""
TOGETHER = 5
KINDS_OF = ("jv1", "summary")
KIND_SHARES = [0.01, 0.05, 0.1, 0.2, 0.5]
ALL_STREAMS: dict[str, tuple[Kind, bool, int]] = {
    "inserts": ("inserts", False, 1),
    "deletes": ("deletes", False, 1),
    "updates": ("updates", False, 1),
    "mixed": ("mixed", False, 4),
    "mixed, skewed": ("mixed", True, 4),
}
"""What changes, whether 80 % of it is among a fifth, and in how many transactions: where several hit the same rows,
their changes are net."""
STREAMS = {s: ALL_STREAMS[s] for s in os.environ.get("MATVIEW_BENCH_STREAMS", ";".join(ALL_STREAMS)).split(";")}
PAPER = {"inserts": "23 %", "deletes": "15 %", "updates": "7 %", "mixed, skewed": "24 %"}


class Bench:
    def __init__(self, root: Path) -> None:
        self.figures: list[Figure] = []
        self.details: dict[str, object] = {"scale": SCALE}
        self.warehouse = matview.open(root / "wh", spark=spark_session(), settings=matview.Settings(lease_ttl=600.0))
        for table, key in KEYS.items():
            rows = self.warehouse.spark.read.parquet(str(tpch.table(table, SCALE)))
            columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema.fields)
            self.warehouse.sql(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key}))")
            with self.warehouse.transaction() as tx:
                tx.insert(table, rows)
        self.orders = Orders(self.warehouse, SCALE)
        for name, text in VIEWS.items():
            seconds = timed(
                lambda text=text, name=name: self.warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
            )
            console.print(f"  {name} made in {seconds:.1f} s")

    def add(self, name: str, value: float, bar: float | None = None, note: str = "") -> None:
        self.figures.append(Figure(name, value, bar, note))
        console.print(f"  {name}: {value:.3f}" + ("" if bar is None else f" (bar {bar:g})") + f"  {note}")

    def tried(self, views: list[str], mode: str) -> float:
        """Seconds of a refresh that is then undone, so that another can be tried on the same change."""
        tx = self.warehouse.transaction()
        try:
            return timed(lambda: tx.refresh(*views, mode=mode))
        finally:
            tx.rollback()

    def applicable(self, view: str) -> list[str]:
        """The strategies that there are for a view or a part of it, as its explanation lists them."""
        told = self.warehouse.explain(view)
        return [one for one in STRATEGIES if re.search(rf"^ +{one} +[0-9.]+ s", told, re.MULTILINE)]

    # the figures ------------------------------------------------------------------------------------------------------

    def small(self) -> None:
        """One row, and none, in writes of nothing."""
        for turn in range(6):
            for view in VIEWS:
                self.one_row(view, turn)
                self.warehouse.refresh(view)
        self.warehouse.refresh(*VIEWS)
        for number, view in enumerate(VIEWS, 1):
            seconds: dict[str, list[float]] = {"refresh": [], "empty": []}
            for turn in range(5):
                self.one_row(view, 10 * number + turn)
                seconds["refresh"].append(timed(lambda view=view: self.warehouse.refresh(view)))
                seconds["empty"] += [timed(self.empty_write) for _ in range(3)]
            chosen = next(v.strategy for v in self.warehouse.views() if v.name == view)
            note = f"{statistics.median(seconds['refresh']):.2f} s, {chosen}"
            self.add(f"one row, {view}, / an empty write", ratio(seconds, "refresh", "empty"), 6.0, note)
            self.add(f"no change, {view}, Spark jobs", self.jobs(lambda view=view: self.warehouse.refresh(view)), 0.0)

    def one_row(self, view: str, turn: int) -> None:
        """One row of the largest table that a view reads, in a way that matters to it."""
        order = 32 * turn + 1
        if "lineitem" in VIEWS[view]:
            change = "l_discount = l_discount + 0.01, l_partkey = l_partkey + 1"
            self.warehouse.sql(f"UPDATE lineitem SET {change} WHERE l_orderkey = {order} AND l_linenumber = 1")
        else:
            self.warehouse.sql(f"UPDATE orders SET o_totalprice = o_totalprice + 1 WHERE o_orderkey = {order}")

    def empty_write(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            self.warehouse.spark.sql("SELECT 1 AS a WHERE FALSE").write.parquet(directory + "/empty")

    def jobs(self, work: Callable[[], object]) -> int:
        context = self.warehouse.spark.sparkContext
        group = f"counted-{time.monotonic_ns()}"
        context.setJobGroup(group, "", False)
        work()
        count = len(context.statusTracker().getJobIdsForGroup(group))
        context.setJobGroup("", "", False)
        return count

    def curve(self) -> None:
        """Seconds by strategy over the share of change, and where computing anew becomes cheaper (C13)."""
        curves: dict[str, dict[str, list[float | None]]] = {v: {s: [] for s in (*STRATEGIES, "chosen")} for v in VIEWS}
        for share in SHARES:
            self.orders.change(share)
            for view in VIEWS:
                seconds = self._strategies(view)
                for strategy in (*STRATEGIES, "chosen"):
                    curves[view][strategy].append(seconds.get(strategy))
                best = min(v for k, v in seconds.items() if k != "chosen")
                chosen = next(v.strategy for v in self.warehouse.views() if v.name == view)
                note = ", ".join(f"{k} {v:.2f} s" for k, v in seconds.items()) + f"; {chosen}"
                self.add(f"chosen / best, {view}, {share:.2%}", seconds["chosen"] / best, 1.25, note)
                if share == 0.001:
                    bar = 1 / 5 if view in ("jv2", "summary") else None
                    self.add(f"incremental / full, {view}, 0.1 %", best / seconds["full"], bar)
        self.details["curves"] = {"shares": SHARES, "seconds": curves}
        draw("curves", "seconds", SHARES, curves)

    def _strategies(self, view: str) -> dict[str, float]:
        """Each tried on the same change, warm, in turn, and turns at being the first; short ones more often, those that
        are far behind once. Then it is made for good."""
        self.tried([view], "auto")
        found = {strategy: [self.tried([view], strategy)] for strategy in (*self.applicable(view), "auto")}
        best = min(seconds for (seconds,) in found.values())
        near = [s for s, (seconds,) in found.items() if seconds < 2 * best or s == "auto"]
        for turn in range(TIMES - 1 if best > 1 else MOST_TIMES - 1):
            for strategy in near[:: 1 if turn % 2 else -1]:
                found[strategy].append(self.tried([view], strategy))
        self.warehouse.refresh(view)
        return {{"auto": "chosen"}.get(k, k): statistics.median(v) for k, v in found.items()}

    def kinds(self) -> None:
        """Delta against anew over the share of change, by what changes (C13, the paper's Figure 4)."""
        ratios: dict[str, dict[str, list[float]]] = {view: {stream: [] for stream in STREAMS} for view in KINDS_OF}
        for stream, (kind, skewed, times) in STREAMS.items():
            for share in KIND_SHARES:
                self.orders.change(share, kind, skewed=skewed, times=times)
                for view in KINDS_OF:
                    delta, full = self.tried([view], "delta"), self.tried([view], "full")
                    ratios[view][stream].append(delta / full)
                    note = f"{delta:.2f} s, {full:.2f} s"
                    self.add(f"delta / full, {view}, {share:.0%} {stream}", delta / full, None, note)
                    self.warehouse.refresh(view)
            for view in KINDS_OF:
                crossing = crossover(ratios[view][stream])
                note = f"paper {PAPER[stream]}" if stream in PAPER else ""
                if crossing is None:
                    note = f"not reached; {note}"
                self.add(f"crossover, {view}, {stream}", crossing or KIND_SHARES[-1], None, note)
        self.details["kinds"] = {"shares": KIND_SHARES, "ratios": ratios}
        draw("kinds", "delta / anew", KIND_SHARES, ratios)

    def together(self) -> None:
        """Five views refreshed in one transaction against each in one of its own, after changes alike of 0.1 %."""
        seconds: dict[str, list[float]] = {"together": [], "alone": []}
        for turn in range(2 * (TOGETHER + 1)):
            self.orders.change(0.001)
            if turn % 2:
                seconds["alone"].append(sum(timed(lambda view=view: self.warehouse.refresh(view)) for view in VIEWS))
            else:
                seconds["together"].append(timed(lambda: self.warehouse.refresh(*VIEWS)))
        warm = {name: found[1:] for name, found in seconds.items()}
        note = ", ".join(f"{name} {statistics.median(found):.2f} s" for name, found in warm.items())
        self.add("five views together / each alone", ratio(warm, "together", "alone"), 0.6, note)


def crossover(ratios: list[float]) -> float | None:
    """The share from which on computing anew is cheaper, between those measured; None if it never is."""
    points = list(zip(KIND_SHARES, ratios, strict=True))
    if points[0][1] >= 1:
        return points[0][0]
    for (one, low), (other, high) in pairwise(points):
        if low < 1 <= high:
            return math.exp(math.log(one) + math.log(other / one) * math.log(1 / low) / math.log(high / low))
    return None


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def draw(
    name: str, what: str, shares: Sequence[float], curves: Mapping[str, Mapping[str, Sequence[float | None]]]
) -> None:
    """A graph for each view, a line for each strategy or stream."""
    figure, axes = pyplot.subplots(1, len(curves), figsize=(4 * len(curves), 3.4), sharey=True)
    for axis, (view, lines) in zip(axes, curves.items(), strict=True):
        for line, values in lines.items():
            style = {"chosen": "k:"}.get(line, "o-")
            axis.plot([100 * s for s in shares], values, style, label=line, markersize=3)
        axis.set(title=view, xscale="log", yscale="log", xlabel="% changed")
    axes[0].set_ylabel(what)
    axes[0].legend()
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"refresh-{name}.png", dpi=110)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="matview-bench-") as directory:
        bench = Bench(Path(directory))
        for part in PARTS:
            console.print(f"[b]{part}[/]")
            getattr(bench, part)()
        report("refresh", bench.figures, bench.details)


if __name__ == "__main__":
    main()
