"""What versions cost: reading, storage, applying changes, against whole snapshots, and readers beside maintenance.

On lineitem of TPC-H at scale factor 1, six million rows. Run with `make bench NAME=versions`.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import matview
from bench import tpch
from bench.report import Figure, alternating, console, ratio, report
from matview.maintain.collect import held_lease
from matview.maintain.folding import fold_all
from matview.spark.session import spark_session
from matview.storage.engine import WRITE_OPTIONS

SCALE = float(os.environ.get("MATVIEW_BENCH_SCALE", "1"))
ROUNDS = int(os.environ.get("MATVIEW_BENCH_ROUNDS", "5"))
READER_SECONDS = float(os.environ.get("MATVIEW_BENCH_READER_SECONDS", "40"))
PARTS = os.environ.get("MATVIEW_BENCH_PARTS", "storage,reading,applying,beside,snapshots").split(",")
KEY = ("l_orderkey", "l_linenumber")
NEVER = matview.Settings(fold_least=10**9, fold_files=10**6)
QUERY = (
    "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice * (1 - l_discount)), avg(l_tax), count(*) "
    "FROM {} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus"
)


def update(thousandths: int) -> str:
    """An update of that many thousandths of the tuples, spread at random over the table."""
    hit = f"pmod(xxhash64({', '.join(KEY)}, 42), 1000) < {thousandths}"
    return f"UPDATE lineitem SET l_quantity = l_quantity + 1, l_discount = 0.05 WHERE {hit}"


class Bench:
    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.root = root
        self.source = spark.read.parquet(str(tpch.table("lineitem", SCALE)))
        self.figures: list[Figure] = []
        self.details: dict[str, object] = {"rows": self.source.count(), "scale": SCALE}
        self.plain_path = root / "plain"
        self.source.write.options(**WRITE_OPTIONS).parquet(str(self.plain_path))
        self.plain = size(self.plain_path)

    def add(self, name: str, value: float, bar: float | None = None, note: str = "") -> None:
        self.figures.append(Figure(name, value, bar, note))
        console.print(f"  {name}: {value:.3f}" + ("" if bar is None else f" (bar {bar:g})"))

    def load(self, versions: int) -> matview.Warehouse:
        warehouse = matview.open(self.root / f"wh{versions}", versions, self.spark, settings=NEVER)
        columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in self.source.schema.fields)
        warehouse.sql(f"CREATE TABLE lineitem ({columns}, PRIMARY KEY ({', '.join(KEY)}))")
        with warehouse.transaction() as tx:
            tx.insert("lineitem", self.source)
        return warehouse

    # the figures ------------------------------------------------------------------------------------------------------

    def storage(self) -> None:
        """Bytes right after loading, for n = 2, 3, 4, against plain Parquet of the same rows."""
        for versions in (4, 3, 2):
            with self.load(versions) as warehouse:
                stored = sum(t.bytes for t in warehouse.status().tables)
                self.add(f"storage, n = {versions}", stored / self.plain, 1.10 if versions == 2 else None)

    def reading(self, warehouse: matview.Warehouse) -> None:
        """Folded: at the newest version, and at the one before with 0.1 % changed since. Then 1 % in the overlay."""
        self._compare("read folded", warehouse.session(), 1.15)
        before = warehouse.session()
        warehouse.sql(update(1))
        fold(warehouse)
        self._compare("read folded, version before", before, 1.15)
        before.close()
        session = warehouse.session()
        warehouse.sql(update(10))
        self._compare("read, 1 % overlay", warehouse.session(), 1.6)
        self._compare("read, 1 % overlay, version before", session, 1.6)

    def _compare(self, name: str, session: matview.ReaderSession, bar: float) -> None:
        seconds = alternating(
            ROUNDS,
            plain=lambda: (
                self.spark.read.parquet(str(self.plain_path)).createOrReplaceTempView("plain")
                or self.spark.sql(QUERY.format("plain")).collect()
            ),
            rewritten=lambda: session.sql(QUERY.format("lineitem")).collect(),
        )
        self.details[name] = seconds
        self.add(name, ratio(seconds, "rewritten", "plain"), bar)

    def applying(self, warehouse: matview.Warehouse) -> None:
        """0.1 % random updates: as a maintenance transaction, and as a rewrite of the table with the same change."""
        fold(warehouse)
        targets = iter(range(10_000))
        seconds = alternating(
            ROUNDS,
            rewrite=lambda: (
                rewritten(self.spark.read.parquet(str(self.plain_path)))
                .write.options(**WRITE_OPTIONS)
                .parquet(str(self.root / f"rewrite{next(targets)}"))
            ),
            update=lambda: warehouse.sql(update(1)),
        )
        self.details["applying"] = seconds
        self.add("apply 0.1 % / rewrite", ratio(seconds, "update", "rewrite"), 0.35)

    def snapshots(self) -> None:
        """Q19: n versions of each tuple against every file of the last n snapshots, after n-1 changes of 0.1 %."""
        for versions in (2, 3, 4):
            shutil.rmtree(self.root / f"wh{versions}", ignore_errors=True)
            with self.load(versions) as warehouse:
                for _ in range(versions - 1):
                    warehouse.sql(update(1))
                fold(warehouse)
                table = next(iter(warehouse.status().tables))
                files = [self.root / f"wh{versions}" / table.directory / f for f in live_files(warehouse)]
                self.add(
                    f"bytes kept, n = {versions}, / {versions} snapshots", table.bytes / (versions * self.plain), 1.0
                )
                columns = (
                    "l_returnflag",
                    "l_linestatus",
                    "l_quantity",
                    "l_extendedprice",
                    "l_discount",
                    "l_tax",
                    "l_shipdate",
                )
                versioned = [f"__pre{i}_{c}" for i in range(1, versions) for c in columns]
                slots = [f"__{k}{i}" for i in range(1, versions) for k in ("vn", "op")]
                old = column_bytes(files, {*columns, *versioned, *slots})
                new = column_bytes(list(self.plain_path.glob("*.parquet")), set(columns))
                self.add(f"bytes read at the oldest version, n = {versions}, / a snapshot", old / new)

    def beside_maintenance(self, warehouse: matview.Warehouse) -> None:
        """Readers' latency, alone and with a process that maintains the same table without a pause."""
        fold(warehouse)
        alone = latencies(warehouse, READER_SECONDS)
        for nice in (10, 0):
            with maintaining(warehouse.path, nice) as transactions:
                waits = warehouse.catalog.waits
                beside = latencies(warehouse, READER_SECONDS)
                waits = warehouse.catalog.waits - waits
                note = (
                    f"{len(beside)} queries, {transactions()} transactions, {waits} waits; maintenance at nice {nice}"
                )
            bar = 1.3 if nice else None
            self.add(
                f"latency beside maintenance, nice {nice}",
                statistics.median(beside) / statistics.median(alone),
                bar,
                note,
            )
            self.details[f"beside {nice}"] = {"alone": alone, "beside": beside, "waits": waits}
            fold(warehouse)


def rewritten(rows: DataFrame) -> DataFrame:
    hit = f"pmod(xxhash64({', '.join(KEY)}, 42), 1000) < 1"
    return rows.selectExpr(
        *(
            f"CASE WHEN {hit} THEN CAST({new} AS {kind}) ELSE {name} END AS {name}" if new else name
            for name, kind in rows.dtypes
            for new in [{"l_quantity": "l_quantity + 1", "l_discount": "0.05"}.get(name)]
        )
    )


def fold(warehouse: matview.Warehouse) -> None:
    """Everything into base files."""
    runtime = warehouse.runtime
    state = runtime.catalog.version()
    with held_lease(runtime, wait=60.0) as lease:
        for record in runtime.catalog.tables.live(state.current_vn):
            fold_all(runtime, lease, runtime.tables.table(record, state.versions))


def live_files(warehouse: matview.Warehouse) -> list[str]:
    runtime = warehouse.runtime
    record = next(iter(runtime.catalog.tables.live(runtime.catalog.version().current_vn)))
    return [f.path for f in runtime.tables.table(record, runtime.catalog.version().versions).log.load().files]


def size(directory: Path) -> int:
    return sum(f.stat().st_size for f in directory.rglob("*.parquet"))


def column_bytes(files: list[Path], columns: set[str]) -> int:
    """Compressed bytes of some columns."""
    total = 0
    for file in files:
        footer = pq.read_metadata(file)
        for group in range(footer.num_row_groups):
            chunks = (footer.row_group(group).column(i) for i in range(footer.num_columns))
            total += sum(c.total_compressed_size for c in chunks if c.path_in_schema in columns)
    return total


def latencies(warehouse: matview.Warehouse, seconds: float) -> list[float]:
    taken: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with warehouse.session() as session:
            began = time.perf_counter()
            session.sql(QUERY.format("lineitem")).collect()
            taken.append(time.perf_counter() - began)
    return taken[1:]


MAINTAIN = """
import sys, matview
sys.path.insert(0, {root!r})
from bench.versions import NEVER, update
warehouse = matview.open({path!r}, settings=NEVER)
print("ready", flush=True)
while True:
    warehouse.sql(update(1))
    print("done", flush=True)
"""


@contextmanager
def maintaining(path: str, nice: int) -> Iterator[Callable[[], int]]:
    """A process that runs one maintenance transaction after the other; counts them."""
    code = MAINTAIN.format(root=str(Path(__file__).parent.parent), path=path)
    log = tempfile.NamedTemporaryFile("w+", suffix=".log")  # noqa: SIM115  (closed below)
    worker = subprocess.Popen(["nice", "-n", str(nice), sys.executable, "-c", code], stdout=log)
    done = lambda: Path(log.name).read_text().count("done")  # noqa: E731
    try:
        while done() < 1 and worker.poll() is None:
            time.sleep(0.5)
        yield done
    finally:
        worker.kill()
        worker.wait()
        log.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="matview-bench-") as directory:
        bench = Bench(spark_session(), Path(directory))
        on_one_table = {"reading": bench.reading, "applying": bench.applying, "beside": bench.beside_maintenance}
        if "storage" in PARTS:
            console.print("[b]storage[/]")
            bench.storage()
            shutil.rmtree(bench.root / "wh2")
        with bench.load(2) as warehouse:
            for part, step in on_one_table.items():
                if part in PARTS:
                    console.print(f"[b]{part}[/]")
                    step(warehouse)
        if "snapshots" in PARTS:
            console.print("[b]snapshots[/]")
            bench.snapshots()
        report("versions", bench.figures, bench.details)


if __name__ == "__main__":
    main()
