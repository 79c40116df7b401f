"""The logical schema of a relation: named, typed columns and perhaps a key."""

from __future__ import annotations

from dataclasses import dataclass

from matview.errors import BadDefinition
from matview.remembered import cached_property
from matview.spelling import meant

RESERVED_PREFIX = "__"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `type` is the text of a Spark SQL type, such as `decimal(12,2)`.

    A `hidden` one is kept by the system for its own work: no query sees it.
    """

    name: str
    type: str
    nullable: bool = True
    hidden: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise BadDefinition("a column needs a name")
        if self.name.startswith(RESERVED_PREFIX) and not self.hidden:
            raise BadDefinition(f"column name {self.name!r} begins with {RESERVED_PREFIX!r}, which is reserved")


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a relational expression, under any name; an empty `type` is one that Spark has to tell."""

    name: str
    type: str = ""
    nullable: bool = True


@dataclass(frozen=True)
class Schema:
    """Columns in order and the key's column names (empty: a bag, in which rows may repeat).

    Names are compared as Spark does, without regard to case.
    """

    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            raise BadDefinition("a table needs at least one column")
        folded = [c.name.casefold() for c in self.columns]
        if twice := sorted({n for n in folded if folded.count(n) > 1}):
            raise BadDefinition(f"two columns have the name {twice[0]!r} (case does not tell names apart)")
        for name in self.key:
            if name not in self.names:
                known = meant(name, self.names) or f"columns: {', '.join(self.names)}"
                raise BadDefinition(f"key column {name!r} is no column of the table", help=known)
        if len(set(self.key)) != len(self.key):
            raise BadDefinition("a column stands twice in the key")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @cached_property
    def visible(self) -> tuple[str, ...]:
        """The names that queries see."""
        return tuple(c.name for c in self.columns if not c.hidden)

    @property
    def is_bag(self) -> bool:
        """Without a key, rows may repeat; a hidden count says how often."""
        return not self.key

    @cached_property
    def updatable(self) -> tuple[str, ...]:
        """The user's columns that an update may change: those outside the key; in a bag, none."""
        return () if self.is_bag else tuple(n for n in self.names if n not in self.key)

    def column(self, name: str) -> Column | None:
        """The column of that name, whatever its case."""
        return next((c for c in self.columns if c.name.casefold() == name.casefold()), None)
