"""The stored columns of a versioned table: the extended schema of sections 3.1 and 5 (Figures 3 and 7).

    __rid | __count (bags) | the user's columns | __vn1 __op1 __pre1_* | ... | __vn{n-1} __op{n-1} __pre{n-1}_*

Slot 1 is the newest. A null slot holds nothing. Only updatable columns have pre-update copies: those outside the key,
so never the group-by columns of a summary table; in a bag, kept as distinct rows, only the hidden count.
"""

from __future__ import annotations

from dataclasses import dataclass

from matview.algebra.schema import Schema
from matview.errors import BadSetting
from matview.remembered import cached_property

RID = "__rid"
COUNT = "__count"
LEVEL = "__level"
BASE = "base"
OVERLAY = "overlay"

RID_TYPE = "bigint"
COUNT_TYPE = "bigint"
VN_TYPE = "bigint"
OPERATION_TYPE = "tinyint"

FEWEST_VERSIONS = 2


@dataclass(frozen=True)
class Layout:
    """How a relation of this schema is stored so that `versions` versions of it can be told (the paper's n)."""

    schema: Schema
    versions: int

    def __post_init__(self) -> None:
        if self.versions < FEWEST_VERSIONS:
            raise BadSetting(f"a table needs at least {FEWEST_VERSIONS} versions, not {self.versions}")

    @property
    def slots(self) -> int:
        """How many earlier changes a tuple remembers: n - 1."""
        return self.versions - 1

    @cached_property
    def updatable(self) -> tuple[str, ...]:
        """The stored columns that have pre-update copies."""
        return (COUNT,) if self.schema.is_bag else self.schema.updatable

    @cached_property
    def current(self) -> tuple[str, ...]:
        """The stored columns that hold the current version: the bag's count, then the user's columns."""
        return ((COUNT,) if self.schema.is_bag else ()) + self.schema.names

    @cached_property
    def fixed(self) -> tuple[str, ...]:
        """The columns of `current` that no update changes; they name the tuple: the key, or a bag's whole row."""
        return tuple(c for c in self.current if c not in self.updatable)

    @cached_property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """(name, Spark type) of every stored column, in stored order; `__level` is a partition and not among them."""
        head = [(RID, RID_TYPE), *((c, self.type_of(c)) for c in self.current)]
        return tuple(head + [column for i in self.slot_numbers for column in self._slot(i)])

    @cached_property
    def types(self) -> dict[str, str]:
        """The Spark type of each stored column."""
        return dict(self.columns)

    @property
    def slot_numbers(self) -> range:
        """1 .. n-1, newest slot first."""
        return range(1, self.versions)

    def vn(self, i: int) -> str:
        """The column for tupleVN_i."""
        return f"__vn{self._checked(i)}"

    def op(self, i: int) -> str:
        """The column for operation_i."""
        return f"__op{self._checked(i)}"

    def pre(self, i: int, column: str) -> str:
        """The column for the i-th pre-update value of an updatable column (`__count` gives `__pre1_count`)."""
        if column not in self.updatable:
            raise KeyError(f"{column!r} is not an updatable column")
        return f"__pre{self._checked(i)}_{column.removeprefix('__')}"

    def type_of(self, column: str) -> str:
        """The Spark type of `__count` or of one of the user's columns."""
        if column == COUNT and self.schema.is_bag:
            return COUNT_TYPE
        found = next((c for c in self.schema.columns if c.name == column), None)
        if found is None:
            raise KeyError(f"{column!r} is no column of the table")
        return found.type

    def _slot(self, i: int) -> list[tuple[str, str]]:
        copies = [(self.pre(i, c), self.type_of(c)) for c in self.updatable]
        return [(self.vn(i), VN_TYPE), (self.op(i), OPERATION_TYPE), *copies]

    def _checked(self, i: int) -> int:
        if i not in self.slot_numbers:
            raise IndexError(f"slot {i} is outside 1..{self.slots}")
        return i
