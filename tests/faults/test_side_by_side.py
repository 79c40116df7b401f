"""The Delta commits of a transaction go side by side: one may fail when others have come about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

import matview
from matview.errors import StorageFailure
from matview.storage.delta import DeltaFiles
from matview.storage.snapshot import DataFile, Snapshot


@pytest.mark.conforms("Q17")
@pytest.mark.parametrize("gone", ["once", "for the undoing too"])
def test_the_first_fails_after_the_others(
    gone: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came about is taken back at once, or by the next who takes the lease; nobody has seen it."""
    with matview.open(tmp_path / "wh", spark=spark) as warehouse:
        for name in "abc":
            warehouse.sql(f"CREATE TABLE {name} (id INT, v INT, PRIMARY KEY (id))")
            warehouse.sql(f"INSERT INTO {name} VALUES (1, 1)")
        commit, done, failures = DeltaFiles.commit, list[str](), list[str]()

        def failing(
            self: DeltaFiles, read: Snapshot, token: int, add: Sequence[DataFile], remove: Sequence[DataFile]
        ) -> None:
            name = Path(self.files.uri()).name[0]
            if name == "a" and (gone != "once" or not failures):
                wait_until(lambda: len(done) >= 2)
                failures.append(name)
                raise StorageFailure("the storage of a is gone")
            commit(self, read, token, add, remove)
            done.append(name)

        monkeypatch.setattr(DeltaFiles, "commit", failing)
        before = warehouse.catalog.version().current_vn
        with pytest.raises(StorageFailure):
            add_to_all(warehouse, 1)
        assert sorted(done[:2]) == ["b", "c"]
        monkeypatch.undo()
        values = "SELECT a.v AS a, b.v AS b, c.v AS c FROM a, b, c"
        assert [tuple(row) for row in warehouse.sql(values).collect()] == [(1, 1, 1)]  # type: ignore[union-attr]
        add_to_all(warehouse, 5)
        assert warehouse.catalog.version().current_vn == before + 1
        assert [tuple(row) for row in warehouse.sql(values).collect()] == [(6, 6, 6)]  # type: ignore[union-attr]


def add_to_all(warehouse: matview.Warehouse, number: int) -> None:
    with warehouse.transaction() as tx:
        for name in "abc":
            tx.sql(f"UPDATE {name} SET v = v + {number}")
