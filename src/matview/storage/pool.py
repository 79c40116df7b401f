"""Columns of row groups that were read on the driver, kept while there is room: files never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import pyarrow as pa

from matview.machine import GIB, MIB, memory

MOST_BYTES = max(64 * MIB, min(1 * GIB, memory() // 20))
AROUND = 2_048
LARGEST_SHARE = 8
"""A column that would take more than this part of the room is not kept."""

Group = tuple[str, int]
"""A file, by its whole address, and the number of a row group in it."""


class Pool:
    """Those asked for last, up to so many bytes, for any number of threads; two who ask at once may both read."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._columns: OrderedDict[tuple[Group, str], pa.ChunkedArray] = OrderedDict()
        self._bytes = 0

    def columns(self, group: Group, names: Sequence[str], read: Callable[[list[str]], pa.Table]) -> pa.Table:
        """The named columns of a row group; `read` gives those that are not here."""
        with self._lock:
            found = {name: column for name in names if (column := self._touched(group, name)) is not None}
        missing = [name for name in names if name not in found]
        if missing:
            fresh = read(missing)
            found |= dict(zip(fresh.column_names, fresh.columns, strict=True))
            with self._lock:
                for name in missing:
                    self._keep((group, name), found[name])
        return pa.table({name: found[name] for name in names})

    def _touched(self, group: Group, name: str) -> pa.ChunkedArray | None:
        column = self._columns.get((group, name))
        if column is not None:
            self._columns.move_to_end((group, name))
        return column

    def _keep(self, key: tuple[Group, str], column: pa.ChunkedArray) -> None:
        if key in self._columns or column.nbytes > self._most // LARGEST_SHARE:
            return
        self._columns[key] = column
        self._bytes += _size(column)
        while self._bytes > self._most:
            _, gone = self._columns.popitem(last=False)
            self._bytes -= _size(gone)


def _size(column: pa.ChunkedArray) -> int:
    """With what is around the values: those of small files are few."""
    return int(column.nbytes) + AROUND
