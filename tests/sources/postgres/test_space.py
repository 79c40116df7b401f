"""Delta tables give back the space of what was acknowledged: to rows that come, and to the disk where it is much."""

from __future__ import annotations

import pytest
from tests.sources.postgres.lab import PostgresLab

from matview.sources import connect
from matview.sources.engine import Source, SourceTable
from matview.sources.postgres import capture
from matview.sources.postgres.describe import oid_of

WRITTEN = "INSERT INTO wide SELECT g, repeat('x', 100) FROM generate_series(1, 5000) AS g"


def pages(lab: PostgresLab, table: SourceTable) -> int:
    named = f"SELECT pg_relation_size(oid) / 8192 FROM pg_class WHERE relname = 'added_{oid_of(table)}'"
    ((size,),) = lab.asked(named)
    return int(size)


def consume(source: Source, tables: list[SourceTable]) -> int:
    captured = source.capture(tables)
    source.acknowledge(tables, captured.taken)
    return captured.rows


@pytest.mark.parametrize("kept", [10, 8192])
def test_space_is_used_again_or_given_back(lab: PostgresLab, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr(capture, "KEPT", kept)
    lab.execute("CREATE TABLE wide (id int, city text)")
    source = connect(lab.url)
    tables = source.describe(["wide"])
    source.install(tables)
    sizes = []
    for _ in range(3):
        lab.execute(WRITTEN)
        sizes.append(pages(lab, tables[0]))
        assert consume(source, tables) == 5000
    assert sizes[0] == sizes[1] == sizes[2] > 50
    assert (pages(lab, tables[0]) == 0) == (kept == 10)
    source.close()
