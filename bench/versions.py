"""What versions cost: reading, storage, applying changes, against whole snapshots, and readers beside maintenance.

On lineitem of TPC-H at scale factor 1, six million rows. Run with `make bench NAME=versions`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import matview
from bench import tpch
from bench.report import Figure, alternating, console, ratio, report
from matview.cli.priority import NICE
from matview.maintain.upkeep.collect import held_lease
from matview.maintain.upkeep.folding import fold_all
from matview.spark.session import spark_session
from matview.storage.engine import WRITE_OPTIONS

PLAIN = {name: value for name, value in WRITE_OPTIONS.items() if not name.startswith("parquet.block.")}
"""As the store writes files, but in row groups as large as Spark makes them for anybody."""
SCALE = float(os.environ.get("MATVIEW_BENCH_SCALE", "1"))
ROUNDS = int(os.environ.get("MATVIEW_BENCH_ROUNDS", "5"))
READER_SECONDS = float(os.environ.get("MATVIEW_BENCH_READER_SECONDS", "60"))
TURNS = 4
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
        self.source.write.options(**PLAIN).parquet(str(self.plain_path))
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
                .write.options(**PLAIN)
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
        """Readers' latency, with a process that maintains the same table without a pause, and with it stopped."""
        for nice in (NICE, 0):
            fold(warehouse)
            with Maintenance(warehouse.path, nice) as maintenance:
                every = warehouse.catalog.waits
                alone, beside = Readers(warehouse), Readers(warehouse)
                for _ in range(TURNS):
                    with maintenance.stopped():
                        alone.read(READER_SECONDS / TURNS)
                    beside.read(READER_SECONDS / TURNS)
                waits = alone.waits + beside.waits
                others = warehouse.catalog.waits - every - waits
            seconds = {"alone": alone.seconds, "beside": beside.seconds}
            note = f"{len(beside.seconds)} queries, {maintenance.done} transactions; queries waited {waits} times, "
            note += f"opening and closing sessions {others}"
            value = ratio(seconds, "beside", "alone")
            self.add(f"latency beside maintenance, nice {nice}", value, 1.3 if nice else None, note)
            self.details[f"beside {nice}"] = {**seconds, "waits": waits, "waits of sessions": others}


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


@dataclass
class Readers:
    """Sessions of one query each, one after the other: how long their queries take, and how often those had to wait."""

    warehouse: matview.Warehouse
    seconds: list[float] = field(default_factory=list)
    waits: int = 0

    def read(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self.warehouse.session() as session:
                waits, began = self.warehouse.catalog.waits, time.perf_counter()
                session.sql(QUERY.format("lineitem")).collect()
                self.seconds.append(time.perf_counter() - began)
                self.waits += self.warehouse.catalog.waits - waits


class Maintenance:
    """A process that runs one maintenance transaction after the other, from the third on, which can be stopped.

    It ends between two of them, and so gives its lease back.
    """

    CODE = """
import sys, matview
from pathlib import Path
sys.path.insert(0, {root!r})
from bench.versions import update
warehouse = matview.open({path!r}, settings=matview.Settings(lease_ttl=600.0))
while Path({going!r}).exists():
    warehouse.sql(update(1))
    print("done", flush=True)
"""
    WARM = 3

    def __init__(self, path: str, nice: int) -> None:
        self._path = path
        self._nice = nice
        self.done = 0

    def __enter__(self) -> Maintenance:
        self._log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self._going = tempfile.NamedTemporaryFile()
        root = str(Path(__file__).parent.parent)
        code = self.CODE.format(root=root, path=self._path, going=self._going.name)
        command = ["nice", "-n", str(self._nice), sys.executable, "-c", code]
        self._worker = subprocess.Popen(command, stdout=self._log, process_group=0)
        while self._count() < self.WARM and self._worker.poll() is None:
            time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self.done = self._count() - self.WARM
        self._going.close()
        self._worker.wait()
        self._log.close()

    def _count(self) -> int:
        return Path(self._log.name).read_text().count("done")

    def _holds_the_catalog(self) -> bool:
        """Stopped in the middle of a write to it, which takes some thousandths of a second and would now take long."""
        with closing(sqlite3.connect(f"{self._path}/catalog.sqlite", timeout=0.0, isolation_level=None)) as catalog:
            try:
                catalog.execute("BEGIN IMMEDIATE")
                catalog.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return True
        return False

    @contextmanager
    def stopped(self) -> Iterator[None]:
        os.killpg(self._worker.pid, signal.SIGSTOP)
        while self._holds_the_catalog():
            os.killpg(self._worker.pid, signal.SIGCONT)
            time.sleep(0.01)
            os.killpg(self._worker.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._worker.pid, signal.SIGCONT)


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
