"""The Delta log of one table: readers never wait for a commit, errors are our own, statistics are not guessed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.transaction import AddAction

from matview.algebra.schema import Column, Schema
from matview.errors import StorageFailure
from matview.storage import delta
from matview.storage.delta import DeltaFiles
from matview.storage.files import Files
from matview.storage.snapshot import DataFile, Level, Snapshot
from matview.storage.stats import data_file
from matview.versions.layout import Layout

KEYED = Layout(Schema((Column("id", "int", False), Column("v", "int")), ("id",)), 3)
BAG = Layout(Schema((Column("v", "int"),)), 3)
FIELDS = [{"name": name, "type": "integer", "nullable": True, "metadata": {}} for name in ("id", "__vn1")]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(str(tmp_path / "t"))


@pytest.fixture
def log(files: Files) -> DeltaFiles:
    made = DeltaFiles(files, lambda: FIELDS)
    made.create(1)
    return made


def written(files: Files, name: str = "part-1.parquet") -> DataFile:
    files.make("data")
    pq.write_table(
        pa.table({"id": pa.array([1, 2], pa.int32()), "__vn1": pa.array([2, 3], pa.int32())}), files.uri(f"data/{name}")
    )
    return data_file(files, f"data/{name}", Level.BASE, 100)


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    return thread, found


@pytest.mark.conforms("Q14")
def test_a_reader_does_not_wait_for_a_commit(log: DeltaFiles, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, go_on, write = threading.Event(), threading.Event(), DeltaFiles._write

    def slowly(*arguments: Any) -> None:
        stuck.set()
        assert go_on.wait(30)
        write(*arguments)

    monkeypatch.setattr(DeltaFiles, "_write", slowly)
    read, new = log.load(), written(files)
    committing, _ = in_thread(lambda: log.commit(read, 2, [new], ()))
    assert stuck.wait(30)
    reading, found = in_thread(log.load)
    reading.join(10)
    assert found == [read]
    go_on.set()
    committing.join(30)
    assert [f.path for f in log.load().files] == [new.path]


def test_what_others_commit_is_seen_at_once(log: DeltaFiles, files: Files) -> None:
    other, new = DeltaFiles(files, lambda: FIELDS), [written(files, f"part-{n}.parquet") for n in range(3)]
    for number, (by, sees) in enumerate([(log, other), (other, log), (log, other)]):
        by.commit(by.load(), number + 2, [new[number]], ())
        for one in (sees, by):
            found = one.load()
            assert (found.delta_version, found.token) == (number + 1, number + 2)
            assert {f.path for f in found.files} == {f.path for f in new[: number + 1]}


@pytest.mark.parametrize("hours", [2, -2], ids=["two hours later", "two hours earlier"])
def test_what_was_committed_so_long_ago_that_its_entry_is_gone(
    log: DeltaFiles, files: Files, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the clock was set back, so that nobody knows how long ago it was."""
    assert log.load().delta_version == 0
    other, new = DeltaFiles(files, lambda: FIELDS), written(files)
    other.commit(other.load(), 2, [new], ())
    other.commit(other.load(), 3, (), [new])
    other.checkpoint()
    files.delete([f"_delta_log/{version:020d}.json" for version in (0, 1)])
    then = time.time() + 3600 * hours
    monkeypatch.setattr(delta.time, "time", lambda: then)
    assert log.load().delta_version == 2


def test_failures_are_our_own(log: DeltaFiles, files: Files) -> None:
    files.delete_dir("_delta_log")
    for doing in (
        log.checkpoint,
        lambda: log.add_columns(FIELDS, 2),
        lambda: log.commit(Snapshot(0, 1, ()), 2, (), ()),
    ):
        with pytest.raises(StorageFailure):
            doing()


def test_only_a_commit_says_that_nothing_was_committed(log: DeltaFiles, files: Files) -> None:
    files.delete_dir("_delta_log")
    with pytest.raises(StorageFailure) as reading:
        log.load()
    with pytest.raises(StorageFailure) as committing:
        log.commit(Snapshot(0, 1, ()), 2, (), ())
    assert "committed" not in reading.value.help
    assert "nothing was committed" in committing.value.help


def test_files_fail_in_our_own_words(files: Files, tmp_path: Path) -> None:
    files.make()
    (tmp_path / "t" / "noise.parquet").write_text("Dear diary")
    for path in ("gone.parquet", "noise.parquet"):
        with pytest.raises(StorageFailure, match=path):
            files.parquet(path)
    (tmp_path / "t" / "plain").touch()
    with pytest.raises(StorageFailure, match="listing"):
        files.list("plain")
    assert files.list("nowhere") == []
    assert files.delete(["gone", "plain"]) == 1


# statistics -----------------------------------------------------------------------------------------------------------


def known(layout: Layout, **less: object) -> Snapshot:
    maximum: dict[str, object] = {layout.vn(1): 5, layout.op(1): 2, "__count": 3} | less
    file = DataFile("data/1", Level.BASE, 10, 2, {}, {k: v for k, v in maximum.items() if v is not None})
    return Snapshot(1, 1, (file,))


@pytest.mark.parametrize("layout", [KEYED, BAG], ids=["keyed", "bag"])
def test_facts_come_from_statistics(layout: Layout) -> None:
    facts = known(layout).facts(layout)
    assert (facts.newest, facts.greatest_op) == ((5, 0), 2)
    assert facts.greatest_count == (3 if layout is BAG else 1)
    assert Snapshot(0, 0, ()).facts(layout).newest == (0, 0)


@pytest.mark.parametrize("column", ["__vn1", "__op1", "__count"])
def test_what_is_not_known_is_not_taken_for_nothing(column: str) -> None:
    with pytest.raises(StorageFailure, match=column) as lost:
        known(BAG, **{column: None}).facts(BAG)
    assert "statistics" in lost.value.help


def test_a_file_without_any_statistics(log: DeltaFiles, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a program leaves it that rewrites the table its own way."""
    new = written(files)
    monkeypatch.setattr("matview.storage.delta.delta_stats", lambda _: None)
    monkeypatch.setattr("matview.storage.delta.AddAction", lambda *a: AddAction(*a[:5], None))
    log.commit(log.load(), 2, [new], ())
    with pytest.raises(StorageFailure, match="no statistics"):
        DeltaFiles(files, lambda: FIELDS).load()
