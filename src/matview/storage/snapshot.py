"""What a Delta table holds at one moment: its live files with their statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from matview.errors import StorageFailure
from matview.remembered import cached_property
from matview.versions import layout as stored
from matview.versions.facts import Facts
from matview.versions.layout import COUNT, Layout

APPLICATION = "matview"
"""Under this name the tokens of our transactions stand in a Delta log."""

NO_STATISTICS = (
    "some other program has rewritten the table without statistics, by which versions are told: restore the table's "
    "Delta version of before, or let that program gather statistics of every column"
)


class Level(StrEnum):
    """Base files hold every tuple once; overlay files hold later states of some of them."""

    BASE = stored.BASE
    OVERLAY = stored.OVERLAY


@dataclass(frozen=True, slots=True)
class DataFile:
    """A live Parquet file; `minimum` and `maximum` by column, absent where nothing is known."""

    path: str
    level: Level
    size: int
    rows: int
    minimum: Mapping[str, object] = field(repr=False)
    maximum: Mapping[str, object] = field(repr=False)

    def greatest(self, column: str) -> int:
        """The greatest value of an integer column that is never null; without statistics nothing can be told."""
        found = self.maximum.get(column)
        if not isinstance(found, int):
            raise StorageFailure(f"the file {self.path} has no statistics of {column}", help=NO_STATISTICS)
        return found


def data_file_of(row: Mapping[str, object]) -> DataFile:
    """An add action of a Delta log, flat, as a file."""
    minimum = {name[4:]: value for name, value in row.items() if name.startswith("min.") and value is not None}
    maximum = {name[4:]: value for name, value in row.items() if name.startswith("max.") and value is not None}
    path, size, records = row["path"], row["size_bytes"], row["num_records"]
    if not isinstance(records, int):
        raise StorageFailure(f"the file {path} has no statistics", help=NO_STATISTICS)
    assert isinstance(path, str)
    assert isinstance(size, int)
    return DataFile(path, Level(str(row[f"partition.{stored.LEVEL}"])), size, records, minimum, maximum)


@dataclass(frozen=True)
class Snapshot:
    """The live files at one Delta version; `token` is that of the last transaction that committed."""

    delta_version: int
    token: int
    files: tuple[DataFile, ...]

    def after(self, token: int, add: Sequence[DataFile], remove: Sequence[DataFile]) -> Snapshot:
        """The next one, if a transaction commits these files to this one."""
        gone = {f.path for f in remove}
        return Snapshot(self.delta_version + 1, token, (*(f for f in self.files if f.path not in gone), *add))

    @cached_property
    def base(self) -> tuple[DataFile, ...]:
        return tuple(f for f in self.files if f.level is Level.BASE)

    @cached_property
    def overlay(self) -> tuple[DataFile, ...]:
        return tuple(f for f in self.files if f.level is Level.OVERLAY)

    def greatest(self, column: str) -> int:
        """The greatest value of an integer column that is never null, over all files; 0 without any tuple."""
        return max((f.greatest(column) for f in self.files if f.rows), default=0)

    def greatest_if_any(self, column: str) -> int:
        """The greatest value of an integer column over all files; 0 where it is null throughout."""
        found = (f.maximum.get(column) for f in self.files)
        return max((v for v in found if isinstance(v, int)), default=0)

    def facts(self, layout: Layout) -> Facts:
        """What the statistics say about every tuple, so that a reading leaves out what cannot matter."""
        older = range(2, layout.versions)
        return Facts(
            newest=(self.greatest(layout.vn(1)), *(self.greatest_if_any(layout.vn(i)) for i in older)),
            greatest_op=self.greatest(layout.op(1)),
            has_overlay=bool(self.overlay),
            greatest_count=self._greatest_count(layout) if layout.schema.is_bag else 1,
            overlay_rows=sum(f.rows for f in self.overlay),
        )

    def _greatest_count(self, layout: Layout) -> int:
        before = (self.greatest_if_any(layout.pre(i, COUNT)) for i in range(1, layout.versions))
        return max(self.greatest(COUNT), *before)

    def with_files(self, files: tuple[DataFile, ...]) -> Snapshot:
        return Snapshot(self.delta_version, self.token, files)
