"""What a snapshot's file statistics say about all of its tuples at once; the rewrite leaves out what they rule out."""

from __future__ import annotations

from dataclasses import dataclass

from matview.versions.layout import Layout
from matview.versions.tuples import Operation

BROADCAST_ROWS = 500_000  # as many identities, or changed rows, as every executor may be sent a copy of


@dataclass(frozen=True, slots=True)
class Facts:
    """Bounds over every live file of a snapshot. A bound may be too large, which costs speed, never too small.

    newest          the greatest `__vn{i}` per slot, newest slot first; 0 where no tuple has that slot
    greatest_op     the greatest `__op1`; VOID if unknown
    has_overlay     some live file belongs to the overlay
    greatest_count  the greatest `__count`, pre-update ones included (bags only)
    overlay_rows    the tuples in the overlay
    """

    newest: tuple[int, ...]
    greatest_op: int = Operation.VOID
    has_overlay: bool = False
    greatest_count: int = 1
    overlay_rows: int = 0

    def __post_init__(self) -> None:
        if not self.newest or min(self.newest) < 0:
            raise ValueError(f"one bound per slot, none below 0: {self.newest}")
        if not 0 <= self.greatest_op <= Operation.VOID:
            raise ValueError(f"no such operation: {self.greatest_op}")
        if self.greatest_count < 0:
            raise ValueError(f"a count is not negative: {self.greatest_count}")

    @classmethod
    def unknown(cls, layout: Layout) -> Facts:
        """Nothing is ruled out: every branch stays in the rewrite."""
        most = 2**63 - 1
        return cls((most,) * layout.slots, Operation.VOID, True, most, most)

    def later_slots(self, session_vn: int) -> tuple[int, ...]:
        """The slots, by number, oldest first, that may hold a change later than the session's version."""
        return tuple(i for i in range(len(self.newest), 0, -1) if self.newest[i - 1] > session_vn)

    def check(self, layout: Layout) -> None:
        """The facts of a table with another number of versions are a mistake."""
        if len(self.newest) != layout.slots:
            raise ValueError(f"{len(self.newest)} bounds for {layout.slots} slots")
