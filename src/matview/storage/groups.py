"""What the footer of a Parquet file tells of its row groups. Files do not change: what was found out stays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matview.remembered import cached_property
from matview.storage.stats import group_bounds

GROUP_ROWS, GROUP_BYTES = 200_000, 16 * 1024 * 1024
"""At most so many, in files that are written here: a look-up reads whole row groups."""
VALUE = 8
"""Bytes of a value, as they are counted: a long text counts as many."""

Bounds = tuple[Any, Any] | tuple[()] | None


class Groups:
    """The row groups of a file, by number."""

    def __init__(self, footer: pq.FileMetaData) -> None:
        self.footer = footer
        self._bounds: dict[tuple[int, str], Bounds] = {}
        self._weights: dict[tuple[int, str], int] = {}
        self._rising: dict[tuple[int, str], bool] = {}

    def __len__(self) -> int:
        return int(self.footer.num_row_groups)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.footer.schema.to_arrow_schema().names)

    @cached_property
    def leaves(self) -> dict[str, int]:
        """Where the columns of plain values are among the leaves: one inside of another has a longer path."""
        leaves = (self.footer.schema.column(i) for i in range(self.footer.num_columns))
        return {leaf.name: i for i, leaf in enumerate(leaves) if leaf.name == leaf.path}

    @cached_property
    def rows(self) -> list[int]:
        return [int(self.footer.row_group(group).num_rows) for group in range(len(self))]

    def bounds(self, group: int, name: str) -> Bounds:
        """(least, greatest) of a column that is a leaf; () where all is null; None where nothing is known."""
        known = (group, name)
        if known not in self._bounds:
            self._bounds[known] = group_bounds(self.footer.row_group(group).column(self.leaves[name]))
        return self._bounds[known]

    def constant(self, group: int, name: str) -> tuple[int | None] | None:
        """What all rows have in a column, if that is the same whole number or null; None if it is not, or not known."""
        if name not in self.leaves or (bounds := self.bounds(group, name)) is None:
            return None
        if not bounds:
            return (None,)
        least, greatest = bounds
        if type(least) is not int or least != greatest:
            return None
        statistics = self.footer.row_group(group).column(self.leaves[name]).statistics
        return (least,) if statistics.has_null_count and not statistics.null_count else None

    def is_known_to_rise(self, group: int, name: str) -> bool:
        return self._rising.get((group, name), False)

    def rises(self, group: int, name: str, column: pa.Array) -> bool:
        """Whether a column, which is this one, rises from row to row."""
        known = (group, name)
        if known not in self._rising:
            self._rising[known] = _rising(column)
        return self._rising[known]

    def weight(self, group: int, names: Iterable[str]) -> int:
        """How many values it is to read these columns."""
        return sum(self._weight(group, name) for name in names if name in self.leaves)

    def _weight(self, group: int, name: str) -> int:
        known = (group, name)
        if known not in self._weights:
            size = self.footer.row_group(group).column(self.leaves[name]).total_uncompressed_size
            self._weights[known] = max(self.rows[group], size // VALUE)
        return self._weights[known]


def _rising(column: pa.Array) -> bool:
    """Whole numbers, none of them null or less than the one before it."""
    if column.null_count or not pa.types.is_integer(column.type):
        return False
    return pc.all(pc.less_equal(column[:-1], column[1:])).as_py() is not False
