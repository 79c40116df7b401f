"""Sets of the numbers of delta rows, as ranges.

MariaDB tells triggers of no transaction. But what one transaction has written becomes visible at once, so the set of
all rows that one snapshot shows is a set of whole transactions. It is never "up to the greatest": a lower number may
belong to a transaction that is open still.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Numbers:
    """Ranges with both ends included, in order, with gaps between them."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Numbers:
        """Exactly these."""
        ranges = list[tuple[int, int]]()
        for number in sorted(set(numbers)):
            if ranges and ranges[-1][1] + 1 == number:
                ranges[-1] = (ranges[-1][0], number)
            else:
                ranges.append((number, number))
        return cls(tuple(ranges))

    @classmethod
    def read(cls, ranges: Iterable[Sequence[int]]) -> Numbers:
        return cls(tuple((low, high) for low, high in ranges))

    def plain(self) -> list[list[int]]:
        """As JSON keeps it."""
        return [list(one) for one in self.ranges]

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.ranges, (number, float("inf"))) - 1
        return place >= 0 and number <= self.ranges[place][1]

    def pieces(self, size: int) -> Iterable[tuple[int, int]]:
        """The ranges, none longer than that."""
        for low, high in self.ranges:
            for start in range(low, high + 1, size):
                yield start, min(high, start + size - 1)
