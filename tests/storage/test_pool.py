"""Columns that were read are kept while there is room."""

from __future__ import annotations

import pyarrow as pa

from matview.storage.pool import AROUND, LARGEST_SHARE, Pool

NUMBERS = 1_000
COLUMN = 8 * NUMBERS + AROUND  # bytes of so many whole numbers


class Reads:
    """A file whose row groups have the columns a, b and c; notes what is read of it."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.seen: list[tuple[int, str]] = []

    def ask(self, group: int, *names: str) -> pa.Table:
        def read(missing: list[str]) -> pa.Table:
            self.seen += [(group, name) for name in missing]
            return pa.table({name: pa.array(range(group, group + NUMBERS), pa.int64()) for name in missing})

        found = self.pool.columns(("file", group), names, read)
        assert found.column_names == list(names) and all(column[0].as_py() == group for column in found.columns)
        return found


def test_only_what_is_missing_is_read() -> None:
    reads = Reads(Pool(100 * COLUMN))
    reads.ask(0, "a", "b")
    reads.ask(0, "b", "c", "a")
    reads.ask(1, "a")
    assert reads.seen == [(0, "a"), (0, "b"), (0, "c"), (1, "a")]


def test_those_asked_for_longest_ago_make_room() -> None:
    reads = Reads(Pool(LARGEST_SHARE * COLUMN))
    for group in range(LARGEST_SHARE):
        reads.ask(group, "a")
    reads.ask(0, "a")
    reads.ask(LARGEST_SHARE, "a")
    reads.seen.clear()
    reads.ask(0, "a")
    reads.ask(1, "a")
    assert reads.seen == [(1, "a")]


def test_a_large_column_is_read_each_time() -> None:
    reads = Reads(Pool(LARGEST_SHARE * (8 * NUMBERS) - 1))
    reads.ask(0, "a")
    reads.ask(0, "a")
    assert reads.seen == [(0, "a"), (0, "a")]
