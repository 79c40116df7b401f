"""A SQLite file in both of its ways of writing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.sqlite.lab import SqliteLab

from matview.sources import Source, connect


@pytest.fixture(params=["delete", "wal"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> SqliteLab:
    return SqliteLab(tmp_path / "shop.db", request.param)


@pytest.fixture
def source(lab: SqliteLab) -> Iterator[Source]:
    source = connect(lab.url)
    yield source
    source.close()
