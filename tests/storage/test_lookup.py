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


def test_a_value_that_is_named_twice(spark: Any, tmp_path: Path) -> None:
    """In a column that rises, and in one that does not."""
    with matview.open(tmp_path / "wh", spark=spark) as opened:

        def ids(condition: str) -> list[int]:
            rows = opened.sql(f"SELECT id FROM long WHERE {condition}").collect()  # type: ignore[union-attr]
            return sorted(row["id"] for row in rows)

        opened.sql("CREATE TABLE long (id BIGINT, n INT, PRIMARY KEY (id))")
        opened.sql("INSERT INTO long SELECT id, CAST(pmod(id * 7919, 10007) AS INT) FROM range(20000)")
        for column in ("id", "n"):
            for _ in range(2):  # that a column rises is found out the first time
                assert ids(f"{column} IN (5, 5, 7, 5)") == ids(f"{column} + 0 IN (5, 7)")
        assert str(opened.sql("UPDATE long SET n = n + 1 WHERE id IN (5, 5)")).startswith("1 updated")
        assert str(opened.sql("DELETE FROM long WHERE id IN (6, 6, 7)")).startswith("2 deleted")
        assert ids("TRUE") == [i for i in range(20000) if i not in (6, 7)]


def test_long_texts_count_as_many(warehouse: matview.Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> object:
        return warehouse.sql("SELECT n FROM wide WHERE id = 5").collect()  # type: ignore[union-attr]

    assert jobs(warehouse, look) == 0
    monkeypatch.setattr(query, "MOST_LOOKED_AT", 100 * 20)  # of rows and columns that is enough, of bytes it is not
    assert jobs(warehouse, look) > 0
