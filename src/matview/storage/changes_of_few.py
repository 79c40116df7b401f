"""As `changes`, for few tuples, on the driver: the same rows with the same weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matview.algebra.nodes import OLD_SUFFIX, UPDATES, WEIGHT
from matview.local.kinds import BIGINT, INT, Kind, NotLocal, Value, kind_of, normal
from matview.local.relations import MOST_ROWS, Rows
from matview.local.scalars import Row
from matview.storage.snapshot import DataFile, Level
from matview.storage.table import VersionedTable
from matview.storage.values import rows_of
from matview.versions.layout import COUNT, RID, Layout
from matview.versions.tuples import Operation

THERE_BEFORE = frozenset({int(Operation.UPDATE), int(Operation.DELETE)})
THERE_AFTER = frozenset({int(Operation.INSERT), int(Operation.UPDATE)})


def changes_of_few(table: VersionedTable, files: Sequence[DataFile], columns: Sequence[str]) -> Rows:
    """The signed bag of some columns' rows, each with its weight last; NotLocal if it is for Spark to read."""
    if table.remote is not None and len(files) > 1:
        raise NotLocal("what came and went at a source cancels out")
    told = [_Told(table.layout, first, last) for first, last in _tuples(table, files)]
    rows = [row for one in told for row in (one.paired(columns) if UPDATES in columns else one.signed(columns))]
    return Rows((*columns, WEIGHT), (*(_kind(table.layout, c) for c in columns), BIGINT), rows)


def _kind(layout: Layout, column: str) -> Kind:
    return INT if column == UPDATES else kind_of(layout.type_of(column.removesuffix(OLD_SUFFIX)))


State = dict[str, Value]


def _tuples(table: VersionedTable, files: Sequence[DataFile]) -> list[tuple[State, State]]:
    """Each tuple once, as it was first written and as it was last."""
    names = [name for name, _ in table.layout.columns]
    vn, states = table.layout.vn(1), dict[Value, list[tuple[Value, int, State]]]()
    if sum(f.rows for f in files) > MOST_ROWS:
        raise NotLocal("many rows")
    for later, level in enumerate((Level.BASE, Level.OVERLAY)):
        few = table.few([f for f in files if f.level is level])
        if few is None:
            raise NotLocal("tuples that do not travel")
        for row in rows_of(few, names):
            state = dict(zip(names, row, strict=True))
            states.setdefault(state[RID], []).append((state[vn], later, state))
    ordered = [sorted(found, key=lambda one: one[:2]) for found in states.values()]
    return [(found[0][2], found[-1][2]) for found in ordered]


@dataclass(frozen=True, slots=True)
class _Told:
    """A tuple from before its first state to its last: what it was in between is nobody's business (C10)."""

    layout: Layout
    first: State
    last: State

    @property
    def was(self) -> bool:
        return self.first[self.layout.op(1)] in THERE_BEFORE

    @property
    def is_(self) -> bool:
        return self.last[self.layout.op(1)] in THERE_AFTER

    def before(self, column: str) -> Value:
        return self.first[self.layout.pre(1, column) if column in self.layout.updatable else column]

    def differs(self, columns: Sequence[str]) -> bool:
        return any(not _same(self.last[c], self.before(c)) for c in columns if c in self.layout.updatable)

    def signed(self, columns: Sequence[str]) -> list[Row]:
        now, then = [self.last[c] for c in columns], [self.before(c) for c in columns]
        if self.layout.schema.is_bag:
            weight = (self._count(self.last[COUNT]) if self.is_ else 0) - (
                self._count(self.before(COUNT)) if self.was else 0
            )
            return [(*now, weight)] if weight else []
        if self.was and self.is_ and not self.differs(columns):
            return []
        return [*([(*now, 1)] if self.is_ else []), *([(*then, -1)] if self.was else [])]

    def paired(self, columns: Sequence[str]) -> list[Row]:
        """An update as one row, its old values beside the new."""
        old = [c.removesuffix(OLD_SUFFIX) for c in columns if c.endswith(OLD_SUFFIX)]
        if not (self.was or self.is_) or (self.was and self.is_ and not self.differs(old)):
            return []
        return [(*(self._beside(c) for c in columns), 1 if self.is_ else -1)]

    def _beside(self, column: str) -> Value:
        if column == UPDATES:
            return int(self.was and self.is_)
        if column.endswith(OLD_SUFFIX):
            return self.before(column.removesuffix(OLD_SUFFIX))
        return self.last[column] if self.is_ else self.before(column)

    @staticmethod
    def _count(value: Value) -> int:
        assert isinstance(value, int)
        return value


def _same(one: Value, other: Value) -> bool:
    one, other = normal(one), normal(other)
    return one is other or one == other
