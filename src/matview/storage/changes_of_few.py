"""As `changes`, for few tuples, on the driver: the same rows with the same weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from matview.algebra.nodes import OLD_SUFFIX, UPDATES, WEIGHT, own_column
from matview.local.batch import one_array
from matview.local.kinds import BIGINT, INT, Kind, NotLocal, arrow_of, kind_of
from matview.local.reach import MOST_CHANGED
from matview.local.relations import Rows
from matview.local.scalars import converted, same
from matview.storage.snapshot import DataFile, Level
from matview.storage.table import VersionedTable
from matview.versions.layout import COUNT, RID, Layout
from matview.versions.tuples import Operation

THERE_BEFORE = pa.array([int(Operation.UPDATE), int(Operation.DELETE)])
THERE_AFTER = pa.array([int(Operation.INSERT), int(Operation.UPDATE)])


def changes_of_few(table: VersionedTable, files: Sequence[DataFile], columns: Sequence[str]) -> Rows:
    """The signed bag of some columns' rows, each with its weight last; NotLocal if it is for Spark to read."""
    if table.remote is not None and len(files) > 1:
        raise NotLocal("what came and went at a source cancels out")
    kinds = (*(_kind(table.layout, c, columns) for c in columns), BIGINT)
    first, last = _tuples(table, files, _stored(table.layout, columns))
    told = _Telling.of(table.layout, columns, first, last)
    made = told.paired() if UPDATES in columns else told.counted() if table.schema.is_bag else told.signed()
    arrays = tuple(converted(one, arrow_of(kind)) for one, kind in zip(made, kinds, strict=True))
    return Rows((*columns, WEIGHT), kinds, arrays, len(arrays[-1]))


def _kind(layout: Layout, column: str, columns: Sequence[str]) -> Kind:
    return INT if column == UPDATES else kind_of(layout.type_of(own_column(column, columns)))


def _stored(layout: Layout, columns: Sequence[str]) -> list[str]:
    """What has to be read for these columns of a change."""
    plain = dict.fromkeys(own_column(column, columns) for column in columns if column != UPDATES)
    if layout.schema.is_bag:
        plain[COUNT] = None
    before = [layout.pre(1, column) for column in plain if column in layout.updatable]
    return [RID, layout.vn(1), layout.op(1), *plain, *before]


def _tuples(table: VersionedTable, files: Sequence[DataFile], names: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Each tuple once, as it was first written and as it was last."""
    if sum(f.rows for f in files) > MOST_CHANGED:
        raise NotLocal("many tuples")
    found, wanted = [], tuple(column for column in table.layout.columns if column[0] in names)
    for level in (Level.BASE, Level.OVERLAY):
        few = table.few([f for f in files if f.level is level], wanted, MOST_CHANGED)
        if few is None:
            raise NotLocal("tuples that do not travel")
        found.append(few)
    states = pa.concat_tables(found)
    if pc.count_distinct(states[RID]).as_py() == states.num_rows:
        return states, states
    place = pa.arange(0, states.num_rows)  # what is in the overlay comes after what is in the base
    keys = [(RID, "ascending"), (table.layout.vn(1), "ascending"), ("__place", "ascending")]
    ordered = states.take(pc.sort_indices(states.append_column("__place", place), sort_keys=keys))
    identities = one_array(ordered[RID])
    other, edge = pc.not_equal(identities[1:], identities[:-1]), pa.array([True])
    return ordered.filter(pa.concat_arrays([edge, other])), ordered.filter(pa.concat_arrays([other, edge]))


@dataclass(frozen=True)
class _Telling:
    """How tuples are told, from before their first states to their last: what they were in between is nobody's business
    (C10). `before` has where a state keeps what each column was."""

    columns: Sequence[str]
    before: Mapping[str, str]
    first: pa.Table
    last: pa.Table
    was: pa.Array
    is_: pa.Array
    changed: pa.Array
    """Of those that were and are: in the columns that updates are told by."""

    @classmethod
    def of(cls, layout: Layout, columns: Sequence[str], first: pa.Table, last: pa.Table) -> _Telling:
        plain = [own_column(column, columns) for column in columns if column != UPDATES]
        before = {c: layout.pre(1, c) if c in layout.updatable else c for c in (*plain, COUNT)}
        old = [c.removesuffix(OLD_SUFFIX) for c in columns if c.endswith(OLD_SUFFIX)] if UPDATES in columns else plain
        alike = [
            same(one_array(last[c]), one_array(first[before[c]]), kind_of(layout.type_of(c)))
            for c in old
            if c in layout.updatable
        ]
        was = pc.is_in(one_array(first[layout.op(1)]), THERE_BEFORE.cast(first[layout.op(1)].type))
        is_ = pc.is_in(one_array(last[layout.op(1)]), THERE_AFTER.cast(last[layout.op(1)].type))
        unchanged = reduce(pc.and_, alike) if alike else pa.repeat(True, len(was))
        return cls(columns, before, first, last, was, is_, pc.invert(unchanged))

    def counted(self) -> list[pa.Array]:
        """A bag's rows, as many as came or went."""
        none = pa.scalar(0, pa.int64())
        now = pc.if_else(self.is_, one_array(self.last[COUNT]), none)
        then = pc.if_else(self.was, one_array(self.first[self.before[COUNT]]), none)
        weight = pc.subtract_checked(now, then)
        told = pc.not_equal(weight, none)
        return [*(self._now(c).filter(told) for c in self.columns), weight.filter(told)]

    def signed(self) -> list[pa.Array]:
        """An update goes as it was, and comes as it is."""
        comes = pc.and_(self.is_, pc.or_(pc.invert(self.was), self.changed))
        goes = pc.and_(self.was, pc.or_(pc.invert(self.is_), self.changed))
        parts = ((self._now(c).filter(comes), self._then(c).filter(goes)) for c in self.columns)
        weights = (pa.repeat(pa.scalar(sign, pa.int64()), mask.true_count) for sign, mask in ((1, comes), (-1, goes)))
        return [*map(pa.concat_arrays, parts), pa.concat_arrays(weights)]

    def paired(self) -> list[pa.Array]:
        """An update as one row, its old values beside the new."""
        both = pc.and_(self.was, self.is_)
        told = pc.or_(pc.xor(self.was, self.is_), pc.and_(both, self.changed))
        weight = pc.if_else(self.is_, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        return [*(self._beside(c, both).filter(told) for c in self.columns), weight.filter(told)]

    def _beside(self, column: str, both: pa.Array) -> pa.Array:
        if column == UPDATES:
            return both.cast(pa.int32())
        if column.endswith(OLD_SUFFIX):
            return self._then(column.removesuffix(OLD_SUFFIX))
        return pc.if_else(self.is_, self._now(column), self._then(column))

    def _now(self, column: str) -> pa.Array:
        return one_array(self.last[column])

    def _then(self, column: str) -> pa.Array:
        return one_array(self.first[self.before[column]])
