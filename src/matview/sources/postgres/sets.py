"""Sets of transactions as ranges of their ids.

What is finished when a snapshot is taken is a set, not a bound: a transaction with a lower id may be open still. It is
in a set once it has ended, and not before. Ids have 64 bits and never come again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matview.sources.engine import Taken


@dataclass(frozen=True, slots=True)
class Transactions:
    """Ranges with both ends included, in order, with gaps between them."""

    ranges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for low, high in self.ranges:
            assert 0 <= low <= high, self.ranges
        for (_, high), (low, _) in zip(self.ranges, self.ranges[1:], strict=False):
            assert high + 1 < low, self.ranges

    @classmethod
    def of(cls, ids: Iterable[int]) -> Transactions:
        """Exactly these."""
        ranges: list[tuple[int, int]] = []
        for number in sorted(set(ids)):
            if ranges and ranges[-1][1] + 1 == number:
                ranges[-1] = (ranges[-1][0], number)
            else:
                ranges.append((number, number))
        return cls(tuple(ranges))

    @classmethod
    def finished(cls, snapshot: str) -> Transactions:
        """All that had ended when `pg_current_snapshot()` gave this text: `xmin:xmax:open,open,...`."""
        _, end, still_open = snapshot.split(":")
        ranges, low = [], 0
        for number in sorted(int(one) for one in still_open.split(",") if one):
            if low < number:
                ranges.append((low, number - 1))
            low = number + 1
        if low < int(end):
            ranges.append((low, int(end) - 1))
        return cls(tuple(ranges))

    @classmethod
    def from_taken(cls, taken: Taken) -> Transactions:
        return cls(tuple((low, high) for low, high in taken.get("transactions", ())))

    def minus(self, others: Iterable[Transactions]) -> Transactions:
        """Without those that the others have."""
        left = list(self.ranges)
        for gone_low, gone_high in (one for other in others for one in other.ranges):
            cut = [((low, min(high, gone_low - 1)), (max(low, gone_high + 1), high)) for low, high in left]
            left = [(low, high) for pieces in cut for low, high in pieces if low <= high]
        return Transactions(tuple(left))

    def taken(self) -> Taken:
        return {"transactions": [list(one) for one in self.ranges]}

    def __contains__(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self.ranges)

    def condition(self, column: str) -> str:
        """SQL that says whether the set has the transaction in that column."""
        single = [str(low) for low, high in self.ranges if low == high]
        parts = [f"{column} BETWEEN {low} AND {high}" for low, high in self.ranges if low < high]
        if single:
            parts.append(f"{column} IN ({', '.join(single)})")
        return f"({' OR '.join(parts)})" if parts else "FALSE"
