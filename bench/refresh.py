"""What refreshing views costs: by each strategy and share of change, against computing anew; one row; five together.

On TPC-H at scale factor 1. Run with `make bench NAME=refresh`; MATVIEW_BENCH_SCALE, _PARTS,
_SHARES and _TIMES narrow it.
"""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from matplotlib import pyplot

import matview
from bench import tpch
from bench.report import RESULTS, Figure, console, ratio, report
from matview.spark.session import spark_session

SCALE = float(os.environ.get("MATVIEW_BENCH_SCALE", "1"))
PARTS = os.environ.get("MATVIEW_BENCH_PARTS", "small,curve,kinds,together").split(",")
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


class Bench:
    def __init__(self, root: Path) -> None:
        self.figures: list[Figure] = []
        self.details: dict[str, object] = {"scale": SCALE}
        self.warehouse = matview.open(root / "wh", spark=spark_session(), settings=matview.Settings(lease_ttl=600.0))
        self.turn = 0
        for table, key in KEYS.items():
            rows = self.warehouse.spark.read.parquet(str(tpch.table(table, SCALE)))
            columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema.fields)
            self.warehouse.sql(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key}))")
            with self.warehouse.transaction() as tx:
                tx.insert(table, rows)
        for name, text in VIEWS.items():
            seconds = timed(
                lambda text=text, name=name: self.warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
            )
            console.print(f"  {name} made in {seconds:.1f} s")

    def add(self, name: str, value: float, bar: float | None = None, note: str = "") -> None:
        self.figures.append(Figure(name, value, bar, note))
        console.print(f"  {name}: {value:.3f}" + ("" if bar is None else f" (bar {bar:g})") + f"  {note}")

    def change(self, share: float, kind: str = "mixed", skewed: bool = False) -> None:
        """That share of orders and their lines changes; skewed: 80 % of it among a fifth of the customers."""
        self.turn += 1
        hit = hits("o_orderkey", share, self.turn, "o_custkey" if skewed else None)
        lines = hits("l_orderkey", share, self.turn)
        with self.warehouse.transaction() as tx:
            if kind in ("updates", "mixed"):
                part = "" if kind == "updates" else " AND pmod(xxhash64(l_orderkey, 7), 3) = 0"
                tx.sql(f"UPDATE lineitem SET l_discount = l_discount + 0.01 WHERE {lines}{part}")
                tx.sql(f"UPDATE orders SET o_totalprice = o_totalprice + 1 WHERE {hit}")
            if kind in ("deletes", "mixed"):
                part = "" if kind == "deletes" else " AND pmod(xxhash64(l_orderkey, 7), 3) = 1"
                tx.sql(f"DELETE FROM lineitem WHERE {lines}{part}")
            if kind in ("inserts", "mixed"):
                part = "" if kind == "inserts" else " AND pmod(xxhash64(l_orderkey, 7), 3) = 2"
                names = [c.name for c in self.warehouse.table("lineitem").schema.columns]
                new = f"l_linenumber + {10 * 2**self.turn}"  # another one each time, also of a row that was cloned
                cloned = ", ".join(new if n == "l_linenumber" else n for n in names)
                tx.sql(f"INSERT INTO lineitem SELECT {cloned} FROM lineitem WHERE {lines}{part}")

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
            self.change(share)
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
        draw(curves)

    def _strategies(self, view: str) -> dict[str, float]:
        """Each tried on the same change, warm, some times in turn, and turns at being the first; then it is made for
        good."""
        self.tried([view], "auto")
        found: dict[str, list[float]] = {strategy: [] for strategy in (*self.applicable(view), "auto")}
        for turn in range(TIMES):
            for strategy in list(found)[:: 1 if turn % 2 else -1]:
                found[strategy].append(self.tried([view], strategy))
        self.warehouse.refresh(view)
        return {{"auto": "chosen"}.get(k, k): statistics.median(v) for k, v in found.items()}

    def kinds(self) -> None:
        """Inserts, deletes, updates; uniform and skewed; at 0.1 % and 5 %."""
        for share in (0.001, 0.05):
            for kind in ("inserts", "deletes", "updates", "mixed"):
                for skewed in (False, True):
                    self.change(share, kind, skewed)
                    for view in ("jv2", "summary"):
                        incremental, full = self.tried([view], "delta"), self.tried([view], "full")
                        name = f"{view}, {share:.1%} {kind}{', skewed' if skewed else ''}: delta / full"
                        self.add(name, incremental / full)
                        self.warehouse.refresh(view)

    def together(self) -> None:
        """Five views refreshed in one transaction against each alone, for the same change of 0.1 %."""
        self.change(0.001)
        self.warehouse.refresh(*VIEWS)
        self.change(0.001)
        ratios = []
        for _ in range(3):
            alone = sum(self.tried([view], "auto") for view in VIEWS)
            ratios.append(self.tried(list(VIEWS), "auto") / alone)
        self.add("five views together / each alone", statistics.median(ratios), 0.6)


def hits(column: str, share: float, turn: int, skew: str | None = None) -> str:
    """A condition that holds for that share of the keys, others at each turn."""
    chosen = f"pmod(xxhash64({column}, {turn}), 1000000) < {int(share * 1_000_000)}"
    return chosen if skew is None else f"{chosen} AND (pmod({skew}, 5) = 0 OR pmod(xxhash64({column}, 3), 5) = 0)"


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def draw(curves: dict[str, dict[str, list[float | None]]]) -> None:
    figure, axes = pyplot.subplots(1, len(curves), figsize=(4 * len(curves), 3.4), sharey=True)
    for axis, (view, lines) in zip(axes, curves.items(), strict=True):
        for strategy, seconds in lines.items():
            style = {"chosen": "k:"}.get(strategy, "o-")
            axis.plot([100 * s for s in SHARES], seconds, style, label=strategy, markersize=3)
        axis.set(title=view, xscale="log", yscale="log", xlabel="% changed")
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "refresh-curves.png", dpi=110)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="matview-bench-") as directory:
        bench = Bench(Path(directory))
        for part in PARTS:
            console.print(f"[b]{part}[/]")
            getattr(bench, part)()
        report("refresh", bench.figures, bench.details)


if __name__ == "__main__":
    main()
