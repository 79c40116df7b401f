"""What the contract of all sources needs to know of one engine: how its users write, and how the answer is checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from matview.sources.engine import WEIGHT, Captured

Row = tuple[Any, ...]


class Writer(Protocol):
    """A connection of a user. Without `begin`, each statement is a transaction."""

    def execute(self, sql: str) -> object: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Sample:
    """A column type of the engine: literals of it in its SQL, the Spark type, and the values as Arrow gives them."""

    declaration: str
    literals: tuple[str, ...]
    type: str
    values: tuple[Any, ...]


class Lab(ABC):
    """One empty database of one engine."""

    url: str
    many_writers: ClassVar[bool] = True
    """Whether two transactions may write at the same time."""
    orders_transactions: ClassVar[bool] = True
    """Whether `capture(most=1)` is possible."""
    slices_heaps: ClassVar[bool] = True
    """Whether a table without a key is read in several slices."""
    analyze: ClassVar[str] = "ANALYZE {table}"
    """Lets the engine know how large a table is."""
    conflicts: ClassVar[tuple[type[BaseException], ...]] = ()
    """What a writer may meet when it runs into another: it rolls back and goes on."""
    samples: ClassVar[Sequence[Sample]] = ()
    refused: ClassVar[Sequence[str]] = ()
    """Declarations of columns that cannot be carried."""
    drifts: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Statements by which the captured `{table}` (id, city, amount) drifts away, or capture is bypassed; users go
    on writing."""
    bypasses: ClassVar[frozenset[str]] = frozenset()
    """Those of them by which changes may have been missed."""
    odd_names: ClassVar[Sequence[str]] = (
        "MixedCase",
        "with space",
        'quo"te',
        "select",
        "ünïcode ✓",
        "dot.ted",
        "back`tick",
        "percent%s{0}",
        "semi;--'colon'",
        "back\\slash",
    )

    @abstractmethod
    def beside(self) -> str:
        """The URL by which another warehouse captures the same database."""

    @abstractmethod
    def writer(self) -> Writer: ...

    @abstractmethod
    def quote(self, name: str) -> str:
        """An identifier in the engine's SQL."""

    @abstractmethod
    def rows(self, table: str, columns: Sequence[str]) -> list[Row]:
        """All rows now, read without Matview; values as Arrow gives them for the Spark types."""

    @abstractmethod
    def objects(self) -> object:
        """All that the system catalog knows of tables, triggers, functions, ...: to compare before and after."""

    def execute(self, *statements: str) -> None:
        """Each statement a transaction of its own."""
        writer = self.writer()
        try:
            for statement in statements:
                writer.execute(statement)
        finally:
            writer.close()

    def together(self, *statements: str) -> None:
        """All statements in one transaction."""
        writer = self.writer()
        try:
            writer.begin()
            for statement in statements:
                writer.execute(statement)
            writer.commit()
        finally:
            writer.close()


def bag(tables: Iterable[pa.Table | pa.RecordBatch]) -> Counter[Row]:
    """Rows and how often they come."""
    return Counter(hashable(row.values()) for table in tables for row in table.to_pylist())


def hashable(values: Iterable[Any]) -> Row:
    """Lists as tuples, and NaN as a text that equals itself."""
    return tuple(hashable(v) if isinstance(v, list) else "NaN" if v != v else v for v in values)


def net(*rounds: Captured, table: str) -> Counter[Row]:
    """The sum of the weights of each row, those with 0 left out."""
    sums: Counter[Row] = Counter()
    for captured in rounds:
        for row in captured.changes[table].to_pylist() if table in captured.changes else ():
            weight = row.pop(WEIGHT)
            sums[hashable(row.values())] += weight
    return Counter({row: n for row, n in sums.items() if n})


def plus(rows: Counter[Row], change: Counter[Row]) -> Counter[Row]:
    """A bag after a change; a count below zero is a change that cannot be."""
    sums = Counter(rows)
    for row, n in change.items():
        sums[row] += n
    assert all(n >= 0 for n in sums.values()), f"more deleted than there were: {[r for r, n in sums.items() if n < 0]}"
    return Counter({row: n for row, n in sums.items() if n})
