"""Storage against whole snapshots: n versions of the tuples that changed, or n copies of the table (Q19)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import matview
from matview import Settings
from matview.maintain.upkeep.collect import held_lease
from matview.maintain.upkeep.folding import fold_all
from matview.storage.engine import WRITE_OPTIONS

ROWS = "SELECT id, xxhash64(id) AS a, concat('name ', xxhash64(id, 1) % 5000) AS b, id % 97 AS c FROM range(40000)"


@pytest.mark.conforms("Q19")
def test_versions_against_snapshots(spark: Any, tmp_path: Path) -> None:
    """After n - 1 changes of 1 %, folded: bytes kept are far from n tables, and any of the versions reads one table."""
    versions = 3
    spark.sql(ROWS).coalesce(1).write.options(**WRITE_OPTIONS).parquet(str(tmp_path / "plain"))
    plain = sum(file.stat().st_size for file in (tmp_path / "plain").glob("*.parquet"))
    with matview.open(tmp_path / "wh", versions, spark, settings=Settings(fold_least=10**9)) as warehouse:
        warehouse.sql("CREATE TABLE t (id BIGINT, a BIGINT, b STRING, c BIGINT, PRIMARY KEY (id))")
        with warehouse.transaction() as tx:
            tx.insert("t", spark.sql(ROWS).coalesce(1))
        sessions = [warehouse.session()]
        for turn in range(versions - 1):
            warehouse.sql(f"UPDATE t SET a = a + 1 WHERE pmod(xxhash64(id, {turn + 7}), 100) = 0")
            sessions.append(warehouse.session())
        with held_lease(warehouse.runtime) as lease:
            table = warehouse.runtime.tables.table(warehouse.table("t"), versions)
            fold_all(warehouse.runtime, lease, table)
        (kept,) = warehouse.status().tables
        assert (kept.base_files, kept.overlay_files) == (1, 0)
        assert kept.bytes < 0.5 * versions * plain, "snapshots keep every file of every version"
        assert kept.bytes < 1.25 * plain, "what one session reads is not much more than the table"
        sums = [session.sql("SELECT sum(a - xxhash64(id)) FROM t").collect()[0][0] for session in sessions]
        assert sums[0] == 0 < sums[1] < sums[2], "every version is told from the same files"
