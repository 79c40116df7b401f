"""A warehouse with tables, made without Spark: what Delta and the catalog are told by a maintenance transaction."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from matview.algebra.schema import Column, Schema
from matview.catalog import CatalogChanges, NewTable
from matview.opening import create_catalog
from matview.storage.delta import DeltaFiles
from matview.storage.files import Files
from matview.storage.snapshot import Level
from matview.storage.stats import data_file

SCHEMA = Schema((Column("id", "bigint", False), Column("amount", "bigint")), ("id",))
STORED = ("__rid", "id", "amount", "__vn1", "__op1", "__pre1_amount", "__vn2", "__op2", "__pre2_amount")
FIELDS = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in STORED]


def make_tables(root: str, *names: str) -> None:
    """Tables of three rows each."""
    with create_catalog(root) as catalog:
        lease = catalog.lease.acquire("keeper", 60)
        catalog.transactions.begin(lease)
        created = [NewTable(catalog.tables.reserve(lease), name, SCHEMA, f"tables/{name}") for name in names]
        for table in created:
            _fill(Files(root).under(table.directory), lease.token)
        catalog.transactions.commit(lease, CatalogChanges(created=tuple(created)))
        catalog.lease.release(lease)


def _fill(files: Files, token: int) -> None:
    log = DeltaFiles(files, lambda: FIELDS)
    log.create(token)
    files.make("data")
    known = {"__vn1": 2, "__op1": 1}
    rows = [{name: known.get(name, number if "_" not in name else None) for name in STORED} for number in range(3)]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema([(name, pa.int64()) for name in STORED])), files.uri("data/a"))
    log.commit(log.load(), token, [data_file(files, "data/a", Level.BASE, 100)], ())
