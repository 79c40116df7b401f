"""Which rows have equal values: as Spark sees them, zeros are alike, and so are all that are not numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from matview.local.batch import one_array
from matview.local.kinds import NotLocal
from matview.local.reach import MOST_PAIRS


def alike(column: pa.Array) -> pa.Array:
    """The same, where values that are equal are the same bits."""
    if not pa.types.is_floating(column.type):
        return column
    none = pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), none, pc.add(column, pa.scalar(0.0, column.type)))


@dataclass(frozen=True, slots=True)
class Pairs:
    """The places of rows that stand beside one another, here and there; null where there is none."""

    here: pa.Array
    there: pa.Array

    @classmethod
    def of(cls, here: Sequence[int], there: Sequence[int]) -> Pairs:
        return cls(pa.array(here, pa.int64()), pa.array(there, pa.int64()))

    def where(self, holds: pa.Array) -> Pairs:
        return Pairs(self.here.filter(holds), self.there.filter(holds))

    def others(self, size: int) -> pa.Array:
        """The rows here, so many in all, that stand beside none."""
        every = pa.arange(0, size)
        return every.filter(pc.invert(pc.is_in(every, self.here)))

    def and_others(self, size: int) -> Pairs:
        """Those as well, beside nothing."""
        alone = self.others(size)
        nobody = pa.nulls(len(alone), pa.int64())
        return Pairs(pa.concat_arrays([self.here, alone]), pa.concat_arrays([self.there, nobody]))


def equal_pairs(
    here: Sequence[pa.Array], there: Sequence[pa.Array], needed: Sequence[bool], most: int = MOST_PAIRS
) -> Pairs:
    """Rows that have the same in all columns, which are of the same types here and there.

    Nulls are the same, but for columns in which a value is `needed`. NotLocal if there are more pairs than `most`.
    """
    keys = [pair for mine, theirs, must in zip(here, there, needed, strict=True) for pair in _keys(mine, theirs, must)]
    names = [f"k{i}" for i in range(len(keys))]
    left, right = (
        pa.table([*columns, pa.arange(0, len(columns[0]))], names=[*names, place])
        for place, columns in ((_HERE, [mine for mine, _ in keys]), (_THERE, [theirs for _, theirs in keys]))
    )
    try:
        if len(left) * len(right) > most and _count(left, right, names, most) > most:
            raise NotLocal("many pairs of rows")
        found = left.join(right, names, join_type="inner", use_threads=False)
    except pa.ArrowException as error:
        raise NotLocal(str(error)) from None
    return Pairs(one_array(found[_HERE]), one_array(found[_THERE]))


_HERE, _THERE = "here", "there"


def _keys(mine: pa.Array, theirs: pa.Array, is_needed: bool) -> list[tuple[pa.Array, pa.Array]]:
    """What is equal in these columns where rows are the same; a null is equal to nothing."""
    mine, theirs = alike(mine), alike(theirs)
    if is_needed or not (mine.null_count or theirs.null_count):
        return [(mine, theirs)]
    known = [column.drop_null() for column in (mine, theirs)]
    flags = [(mine.is_null(), theirs.is_null())]
    some = next((values[0] for values in known if len(values)), None)
    return flags if some is None else [*flags, (mine.fill_null(some), theirs.fill_null(some))]


def _count(left: pa.Table, right: pa.Table, names: Sequence[str], most: int) -> int:
    """How many pairs there are, or a number that is larger, and not more than `most`."""
    times = right.group_by(names, use_threads=False).aggregate([([], "count_all")])
    bound = len(left) * (pc.max(times["count_all"]).as_py() or 0)
    if bound <= most:
        return int(bound)
    met = left.join(times, names, join_type="inner", use_threads=False)
    return int(pc.sum(met["count_all"]).as_py() or 0)


def all_pairs(here: int, there: int, most: int = MOST_PAIRS) -> Pairs:
    """Every row here, so many, beside every row there."""
    if here * there > most:
        raise NotLocal("many pairs of rows")
    return Pairs.of([place for place in range(here) for _ in range(there)], list(range(there)) * here)
