"""All 22 queries of TPC-H as views, refreshed after rounds of orders that come and go, and updates; each is audited.

Run with `make tpch ROUNDS=10`. Scale factor 0.01.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from tests.tpch.table import queries, tables

import matview

SCALE = 0.01
SCHEMAS, QUERIES = tables(), {number: query.sql("spark") for number, query in enumerate(queries(), 1)}
CLONED = {"orders": ("o_orderkey", 10_000_000), "lineitem": ("l_orderkey", 10_000_000)}


def load(warehouse: matview.Warehouse, directory: Path) -> None:
    """The tables, as tpchgen makes them."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    command = [str(tool), "parquet", "-s", str(SCALE), f"--output-dir={directory}"]
    subprocess.run(command, check=True, capture_output=True)
    with warehouse.transaction() as tx:
        for name, schema in SCHEMAS.items():
            columns = ", ".join(f"{c.name} {c.type}" for c in schema.columns)
            tx.sql(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({', '.join(schema.key)}))")
            tx.insert(name, warehouse.spark.read.parquet(str(directory / f"{name}.parquet")))


def make_views(warehouse: matview.Warehouse, numbers: Collection[int]) -> list[str]:
    for number in numbers:
        warehouse.sql(f"CREATE MATERIALIZED VIEW q{number} AS {QUERIES[number]}")
    return [f"q{number}" for number in numbers]


def change(warehouse: matview.Warehouse, turn: int) -> None:
    """RF1: new orders with their lines; RF2: old ones go; and updates of five tables. Three transactions."""
    with warehouse.transaction() as tx:
        for table, (key, step) in CLONED.items():
            names = [c.name for c in SCHEMAS[table].columns]
            shown = ", ".join(f"{n} + {step * (turn + 1)}" if n == key else n for n in names)
            some = f"{key} < {step} AND {key} % 400 = {7 * turn + 1}"
            tx.sql(f"INSERT INTO {table} SELECT {shown} FROM {table} WHERE {some}")
    with warehouse.transaction() as tx:
        for table, (key, _) in CLONED.items():
            tx.sql(f"DELETE FROM {table} WHERE {key} % 400 = {11 * turn + 2}")
    with warehouse.transaction() as tx:
        tx.sql(f"UPDATE lineitem SET l_extendedprice = l_extendedprice + 1 WHERE l_orderkey % 300 = {5 * turn + 3}")
        tx.sql(f"UPDATE customer SET c_acctbal = c_acctbal - 10 WHERE c_custkey % 50 = {turn}")
        tx.sql(f"UPDATE partsupp SET ps_supplycost = ps_supplycost + 1, ps_availqty = 1 WHERE ps_partkey % 50 = {turn}")
        tx.sql(f"UPDATE part SET p_size = 15 WHERE p_partkey % 50 = {turn + 10}")
        tx.sql(f"UPDATE supplier SET s_acctbal = s_acctbal + 1 WHERE s_suppkey % 20 = {turn}")


def wrong(warehouse: matview.Warehouse, views: Collection[str]) -> dict[str, int]:
    """The views that differ from their queries, and in how many rows."""
    found = {view: warehouse.diff(view).count() for view in views}
    return {view: rows for view, rows in found.items() if rows}


def main(rounds: int) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as directory, matview.open(Path(directory) / "wh") as warehouse:
        load(warehouse, Path(directory))
        print("tables loaded", flush=True)
        views = make_views(warehouse, range(1, 23))
        print("views made", flush=True)
        for turn in range(rounds):
            change(warehouse, turn)
            began = time.perf_counter()
            warehouse.refresh(*views)
            seconds = time.perf_counter() - began
            differing = wrong(warehouse, views)
            failed += len(differing)
            used = ", ".join(f"{v.name} {v.strategy or 'nothing'}" for v in warehouse.views())
            print(f"round {turn + 1}: refreshed in {seconds:.1f} s; differing: {differing or 'none'}", flush=True)
            print(f"  {used}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
