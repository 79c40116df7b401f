"""A slice of `make tpch`: views that need every kind of part, after one round of changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.tpch.rounds import change, load, make_views, wrong

import matview


@pytest.mark.conforms("M2", "M15", "C6")
def test_after_a_round(spark: Any, tmp_path: Path) -> None:
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        load(warehouse, tmp_path)
        views = make_views(warehouse, [2, 13, 15, 22])
        change(warehouse, 0)
        warehouse.refresh(*views)
        assert wrong(warehouse, views) == {}
