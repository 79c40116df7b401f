"""A statement that is understood and not yet run is refused before anything is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Never

import pytest

import matview
from matview.errors import UnsupportedStatement

STATEMENTS = [
    "CREATE VIEWGROUP g REFRESH ON DEMAND",
    "ALTER VIEWGROUP g REFRESH ON DEMAND",
    "ALTER VIEWGROUP g RENAME TO h",
    "DROP VIEWGROUP IF EXISTS g",
    "REFRESH VIEWGROUP g",
    "SHOW VIEWGROUPS",
    "SHOW SESSIONS",
    "SHOW REFRESHES",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS v IN VIEWGROUP g AS SELECT 1 AS x",
    "CREATE MATERIALIZED VIEW v MAINTAIN IMMEDIATE AS SELECT 1 AS x",
    "CREATE MATERIALIZED VIEW v REFRESH EVERY '5 minutes' AS SELECT 1 AS x",
    "EXPLAIN CREATE MATERIALIZED VIEW v MAINTAIN DEFERRED AS SELECT 1 AS x",
    "ALTER MATERIALIZED VIEW v SET REFRESH POLICY FULL",
    "DROP TABLE IF EXISTS t CASCADE",
    "DROP MATERIALIZED VIEW IF EXISTS v CASCADE",
]


def no_spark() -> Never:
    pytest.fail("Spark was started")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[matview.Warehouse]:
    path: Path = tmp_path_factory.mktemp("unwired") / "wh"
    with matview.open(path, spark=no_spark) as opened:
        yield opened


@pytest.mark.parametrize("text", STATEMENTS)
def test_it_is_refused(text: str, warehouse: matview.Warehouse) -> None:
    with pytest.raises(UnsupportedStatement, match="not run yet") as refused:
        warehouse.sql(text)
    assert refused.value.help
