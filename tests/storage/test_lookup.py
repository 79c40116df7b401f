"""A look-up weighs what it would read before it does: bytes count, and not only rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counting import jobs

import matview
from matview.storage import query


@pytest.fixture
def warehouse(spark: Any, tmp_path: Path) -> Iterator[matview.Warehouse]:
    with matview.open(tmp_path / "wh", spark=spark, settings=matview.Settings(fold_files=3)) as opened:
        opened.sql("CREATE TABLE wide (id INT, n INT, doc STRING, PRIMARY KEY (id))")
        rows = opened.spark.range(100).selectExpr(
            "CAST(id AS INT) AS id", "0 AS n", "repeat(sha2(CAST(id AS STRING), 512), 100) AS doc"
        )
        with opened.transaction() as tx:
            tx.insert("wide", rows)
        yield opened


def test_long_texts_count_as_many(warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> object:
        return warehouse.sql("SELECT n FROM wide WHERE id = 5").collect()  # type: ignore[union-attr]

    assert jobs(warehouse, look) == 0
    monkeypatch.setattr(query, "MOST_LOOKED_AT", 100 * 20)  # of rows and columns that is enough, of bytes it is not
    assert jobs(warehouse, look) > 0
