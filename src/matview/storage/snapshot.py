"""What a Delta table holds at one moment: its live files with their statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from matview.versions.facts import Facts
from matview.versions.layout import COUNT, Layout


class Level(StrEnum):
    """Base files hold every tuple once; overlay files hold later states of some of them."""

    BASE = "base"
    OVERLAY = "overlay"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A live Parquet file; `minimum` and `maximum` by column, absent where nothing is known."""

    path: str
    level: Level
    size: int
    rows: int
    minimum: Mapping[str, object] = field(repr=False)
    maximum: Mapping[str, object] = field(repr=False)


@dataclass(frozen=True)
class Snapshot:
    """The live files at one Delta version; `token` is that of the last transaction that committed."""

    delta_version: int
    token: int
    files: tuple[DataFile, ...]

    @cached_property
    def base(self) -> tuple[DataFile, ...]:
        return tuple(f for f in self.files if f.level is Level.BASE)

    @cached_property
    def overlay(self) -> tuple[DataFile, ...]:
        return tuple(f for f in self.files if f.level is Level.OVERLAY)

    def greatest(self, column: str) -> int:
        """The greatest value of an integer column over all files; 0 where it is null throughout."""
        found = (f.maximum.get(column) for f in self.files)
        return max((v for v in found if isinstance(v, int)), default=0)

    def facts(self, layout: Layout) -> Facts:
        """What the statistics say about every tuple, so that a reading leaves out what cannot matter."""
        slots = range(1, layout.versions)
        counts = [COUNT, *(layout.pre(i, COUNT) for i in slots)] if layout.schema.is_bag else []
        return Facts(
            newest=tuple(self.greatest(layout.vn(i)) for i in slots),
            greatest_op=self.greatest(layout.op(1)),
            has_overlay=bool(self.overlay),
            greatest_count=max((self.greatest(c) for c in counts), default=1),
        )

    def with_files(self, files: tuple[DataFile, ...]) -> Snapshot:
        return Snapshot(self.delta_version, self.token, files)
