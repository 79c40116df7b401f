"""What is folded: decided by counting files and tuples."""

from __future__ import annotations

from matview.storage.fold import LEAST_COMPACT, SMALL_FILE_ROWS, Bounds, choose, due
from matview.storage.snapshot import DataFile, Level, Snapshot

BOUNDS = Bounds(files=4, share=0.01, least=100)


def file(name: str, rows: int, level: Level = Level.BASE) -> DataFile:
    return DataFile(name, level, 10 * rows, rows, {}, {})


def base(*sizes: int) -> tuple[DataFile, ...]:
    return tuple(file(f"b{i}", rows) for i, rows in enumerate(sizes))


def compacted(*sizes: int) -> list[int]:
    return [f.rows for f in due(Snapshot(1, 1, base(*sizes)), BOUNDS).compact]


def test_few_small_files_stay() -> None:
    assert compacted(5, 5, 5, 5, SMALL_FILE_ROWS) == []


def test_small_files_come_together_with_those_of_their_size() -> None:
    assert compacted(50_000, 5, 7, 6, 5, 5) == [5, 5, 5, 6, 7]
    assert compacted(50_000, 50_000, 5, 5, 5, 5, 500) == [5, 5, 5, 5, 500]
    assert compacted(90_000, 40_000, 40_000, 5, 5, 5) == []
    assert compacted(5, 5, *[2_000] * 5) == [2_000] * 5
    assert len(compacted(*[2_000] * 500)) == 500
    assert compacted(90_000, 40_000, *[LEAST_COMPACT] * 50) == [*[LEAST_COMPACT] * 50, 40_000, 90_000]


def test_many_inserts_write_each_tuple_a_few_times() -> None:
    files, written, count = list(base(100_000 - 1)), 0, 0
    for turn in range(1000):
        files.append(file(f"new{turn}", 5))
        chosen = due(Snapshot(1, 1, tuple(files)), BOUNDS).compact
        if chosen:
            rows = sum(f.rows for f in chosen)
            files = [f for f in files if f not in chosen] + [file(f"folded{turn}", rows)]
            written, count = written + rows, count + 1
    assert 100 < count < 300 and written < 60 * 5 * 1000
    assert len(files) <= BOUNDS.files + 8


def test_overlay() -> None:
    overlay = tuple(file(f"o{i}", 30, Level.OVERLAY) for i in range(5))
    call = due(Snapshot(1, 1, (*base(1000), *overlay)), BOUNDS)
    assert call.merge and call.fold and not call.compact
    assert not due(Snapshot(1, 1, (*base(1000), *overlay[:3])), BOUNDS)


def test_the_densest_files_are_folded_first() -> None:
    sparse, dense = base(1000, 10)
    assert choose([(sparse, 10), (dense, 9)], overlay_rows=19, bound=20) == (dense,)
