"""One versioned tuple as a value: its current values and, newest first, what its last n-1 changes were."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

Values = tuple[object, ...]


class Operation(IntEnum):
    """What a maintenance transaction did to a tuple, net; the numbers are those stored in `__op{i}`.

    VOID is ours: the tuple is physically deleted, but its base row has not been folded away; no version shows it.
    """

    INSERT = 1
    UPDATE = 2
    DELETE = 3
    VOID = 4


class Unread(Enum):
    """What a reader gets instead of values: nothing at that version (Table 1), or no way to tell (3.2, case 3)."""

    IGNORE = "ignore"
    EXPIRED = "expired"


# Before a change of this kind the tuple was there, or was not: so the slot below must hold one of these.
_MAY_PRECEDE = {
    Operation.INSERT: {Operation.DELETE},
    Operation.UPDATE: {Operation.INSERT, Operation.UPDATE},
    Operation.DELETE: {Operation.INSERT, Operation.UPDATE},
    Operation.VOID: set(Operation),
}


@dataclass(frozen=True, slots=True)
class Slot:
    """(tupleVN, operation, pre-update values). There are none before an insert: Table 2, `PV <- nulls`."""

    vn: int
    operation: Operation
    pre: Values | None = None

    def __post_init__(self) -> None:
        if self.vn < 1:
            raise ValueError(f"version numbers begin with 1: {self.vn}")
        if (self.pre is not None) != (self.operation in (Operation.UPDATE, Operation.DELETE)):
            raise ValueError(f"an update or a delete has pre-update values, nothing else has: {self}")


@dataclass(frozen=True, slots=True)
class VersionedTuple:
    """`fixed` values (the key), `current` values of the updatable columns, and at most `capacity` = n-1 slots."""

    fixed: Values
    current: Values
    slots: tuple[Slot, ...]
    capacity: int

    def __post_init__(self) -> None:
        if not 1 <= len(self.slots) <= self.capacity:
            raise ValueError(f"a tuple has 1 to {self.capacity} slots, not {len(self.slots)}")
        if any(s.pre is not None and len(s.pre) != len(self.current) for s in self.slots):
            raise ValueError("pre-update values are those of the updatable columns, neither more nor fewer")
        for newer, older in zip(self.slots, self.slots[1:], strict=False):
            if newer.vn <= older.vn:
                raise ValueError(f"slots go from new to old: {newer.vn} before {older.vn}")
            if older.operation not in _MAY_PRECEDE[newer.operation]:
                raise ValueError(f"no {newer.operation.name} can follow a {older.operation.name}")

    @property
    def newest(self) -> Slot:
        return self.slots[0]

    @property
    def full(self) -> bool:
        """Every slot is taken: something older may have been pushed out."""
        return len(self.slots) == self.capacity
