"""Rows in columns of Arrow, and its kernels, which compute a column at a time.

What a kernel does not compute, or what would overflow, is for Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from matview.local.kinds import NotLocal

Datum = Any
"""An Array with a value for each row, or a Scalar that is that of all."""
Function = Callable[["Batch"], Datum]


def kernel(name: str, *given: Datum, options: pc.FunctionOptions | None = None) -> Datum:
    """What Arrow computes; NotLocal where it says that it does not."""
    try:
        return pc.call_function(name, list(given), options)
    except (pa.ArrowException, OverflowError) as error:
        raise NotLocal(str(error)) from None


def whole(datum: Datum, size: int) -> pa.Array:
    """A value for each of so many rows."""
    if isinstance(datum, pa.Array):
        return datum
    return pa.nulls(size, datum.type) if not datum.is_valid else pa.repeat(datum, size)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


@dataclass(frozen=True, slots=True)
class Parted:
    """The rows for which a condition holds, and the others; `order` puts the one after the other into their places.
    None where there are none, and of an order where all are on one side."""

    yes: Batch | None
    no: Batch | None
    order: pa.Array | None = None


class Batch:
    """So many rows; a column of them is there when it is asked for, and conditions part them once."""

    __slots__ = ("_column", "_known", "_parted", "size")

    def __init__(self, size: int, column: Callable[[int], pa.Array]) -> None:
        self.size = size
        self._column = column
        self._known: dict[int, pa.Array] = {}
        self._parted: dict[Function, Parted] = {}

    @classmethod
    def of(cls, columns: Sequence[pa.Array], size: int) -> Batch:
        return cls(size, columns.__getitem__)

    def column(self, place: int) -> pa.Array:
        if place not in self._known:
            self._known[place] = self._column(place)
        return self._known[place]

    def taken(self, places: pa.Array) -> Batch:
        return Batch(len(places), lambda place: self.column(place).take(places))

    def where(self, test: Function) -> Batch:
        return self.parted(test).yes or Batch(0, lambda place: self.column(place).slice(0, 0))

    def parted(self, test: Function) -> Parted:
        """By a condition; what is unknown does not hold."""
        if test not in self._parted:
            self._parted[test] = self._parted_by(test(self))
        return self._parted[test]

    def _parted_by(self, truth: Datum) -> Parted:
        if isinstance(truth, pa.Scalar):
            return Parted(self, None) if truth.as_py() else Parted(None, self)
        held = truth.true_count
        if held == self.size:
            return Parted(self, None)
        if not held:
            return Parted(None, self)
        truth = truth.fill_null(False) if truth.null_count else truth
        yes, no = (pc.indices_nonzero(mask).cast(pa.int32()) for mask in (truth, pc.invert(truth)))
        return Parted(self.taken(yes), self.taken(no), pc.inverse_permutation(pa.concat_arrays([yes, no])))


def beside(size: int, *sides: tuple[Sequence[pa.Array], pa.Array]) -> Batch:
    """So many rows, each put together from one of every side: its columns, and the places of the rows in them."""
    columns = [(column, places) for columns, places in sides for column in columns]
    return Batch(size, lambda place: columns[place][0].take(columns[place][1]))
