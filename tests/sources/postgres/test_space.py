"""Delta tables give back the space of what was acknowledged: to rows that come, and to the disk where it is much."""

from __future__ import annotations

import pytest
from tests.sources.postgres.lab import PostgresLab

from matview.sources import connect
from matview.sources.engine import Source, SourceTable
from matview.sources.postgres import capture
from matview.sources.postgres.describe import oid_of

WRITTEN = "INSERT INTO wide SELECT g, repeat('x', 100) FROM generate_series(1, 5000) AS g"
ROUNDS = 6
"""After some of them there may be nothing to reclaim: the server itself looks through its tables from time to time, and
what it may still read stays. If nothing were ever reclaimed, the table would be that many times as large."""


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
    filled, emptied = [], []
    for _ in range(ROUNDS):
        lab.execute(WRITTEN)
        filled.append(pages(lab, tables[0]))
        assert consume(source, tables) == 5000
        emptied.append(pages(lab, tables[0]))
    assert filled[0] > 50
    assert max(filled) < ROUNDS / 2 * filled[0]
    assert (0 in emptied) == (kept == 10)
    source.close()
