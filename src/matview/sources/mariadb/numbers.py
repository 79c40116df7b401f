"""Sets of the numbers of delta rows, as ranges.

MariaDB tells triggers of no transaction. But what one transaction has written becomes visible at once, so the set of
all rows that one snapshot shows is a set of whole transactions. It is never "up to the greatest": a lower number may
belong to a transaction that is open still.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Range = tuple[int, int]
GREATEST = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Numbers:
    """Ranges with both ends included, in order, with gaps between them."""

    ranges: tuple[Range, ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Numbers:
        """Exactly these."""
        return cls(merged((number, number) for number in numbers))

    @classmethod
    def united(cls, sets: Iterable[Numbers]) -> Numbers:
        """All that are in any of them."""
        return cls(merged(one for numbers in sets for one in numbers.ranges))

    @classmethod
    def read(cls, ranges: Iterable[Sequence[int]]) -> Numbers:
        return cls(tuple((low, high) for low, high in ranges))

    def plain(self) -> list[list[int]]:
        """As JSON keeps it."""
        return [list(one) for one in self.ranges]

    def others(self) -> Numbers:
        """All other numbers that a change can have."""
        lows = [1, *(high + 1 for _, high in self.ranges)]
        highs = [*(low - 1 for low, _ in self.ranges), GREATEST]
        return Numbers(tuple((low, high) for low, high in zip(lows, highs, strict=True) if low <= high))

    def pieces(self, size: int) -> Iterable[Range]:
        """The ranges, none longer than that."""
        for low, high in self.ranges:
            for start in range(low, high + 1, size):
                yield start, min(high, start + size - 1)


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same numbers, in order and with gaps between the ranges."""
    found = list[Range]()
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return tuple(found)
