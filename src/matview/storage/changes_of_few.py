"""As `changes`, for few tuples, on the driver: the same rows with the same weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matview.algebra.nodes import OLD_SUFFIX, UPDATES, WEIGHT, own_column
from matview.local.kinds import BIGINT, INT, Kind, NotLocal, Value, kind_of, normal
from matview.local.relations import Rows
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
    telling = _Telling.of(table.layout, columns)
    tell = telling.paired if UPDATES in columns else telling.signed
    rows = [row for first, last in _tuples(table, files, _stored(table.layout, columns)) for row in tell(first, last)]
    return Rows((*columns, WEIGHT), (*(_kind(table.layout, c, columns) for c in columns), BIGINT), rows)


def _kind(layout: Layout, column: str, columns: Sequence[str]) -> Kind:
    return INT if column == UPDATES else kind_of(layout.type_of(own_column(column, columns)))


State = dict[str, Value]


def _stored(layout: Layout, columns: Sequence[str]) -> list[str]:
    """What has to be read for these columns of a change."""
    plain = dict.fromkeys(own_column(column, columns) for column in columns if column != UPDATES)
    if layout.schema.is_bag:
        plain[COUNT] = None
    before = [layout.pre(1, column) for column in plain if column in layout.updatable]
    return [RID, layout.vn(1), layout.op(1), *plain, *before]


def _tuples(table: VersionedTable, files: Sequence[DataFile], names: Sequence[str]) -> list[tuple[State, State]]:
    """Each tuple once, as it was first written and as it was last."""
    vn, states = table.layout.vn(1), dict[Value, list[tuple[Value, int, State]]]()
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
class _Telling:
    """How a tuple is told, from before its first state to its last: what it was in between is nobody's business (C10).

    `before` has where a state keeps what each column was; `old` are the columns that updates are told by.
    """

    columns: Sequence[str]
    operation: str
    before: Mapping[str, str]
    old: tuple[str, ...]
    is_bag: bool

    @classmethod
    def of(cls, layout: Layout, columns: Sequence[str]) -> _Telling:
        plain = [own_column(column, columns) for column in columns if column != UPDATES]
        before = {c: layout.pre(1, c) if c in layout.updatable else c for c in (*plain, COUNT)}
        old = [c.removesuffix(OLD_SUFFIX) for c in columns if c.endswith(OLD_SUFFIX)] if UPDATES in columns else plain
        told = tuple(c for c in old if c in layout.updatable)
        return cls(columns, layout.op(1), before, told, layout.schema.is_bag)

    def differs(self, first: State, last: State) -> bool:
        return any(not _same(last[c], first[self.before[c]]) for c in self.old)

    def signed(self, first: State, last: State) -> list[Row]:
        was, is_ = first[self.operation] in THERE_BEFORE, last[self.operation] in THERE_AFTER
        if self.is_bag:
            weight = (_count(last[COUNT]) if is_ else 0) - (_count(first[self.before[COUNT]]) if was else 0)
            return [(*[last[c] for c in self.columns], weight)] if weight else []
        if was and is_ and not self.differs(first, last):
            return []
        come: list[Row] = [(*[last[c] for c in self.columns], 1)] if is_ else []
        return [*come, (*[first[self.before[c]] for c in self.columns], -1)] if was else come

    def paired(self, first: State, last: State) -> list[Row]:
        """An update as one row, its old values beside the new."""
        was, is_ = first[self.operation] in THERE_BEFORE, last[self.operation] in THERE_AFTER
        if not (was or is_) or (was and is_ and not self.differs(first, last)):
            return []

        def beside(column: str) -> Value:
            if column == UPDATES:
                return int(was and is_)
            if column.endswith(OLD_SUFFIX):
                return first[self.before[column.removesuffix(OLD_SUFFIX)]]
            return last[column] if is_ else first[self.before[column]]

        return [(*map(beside, self.columns), 1 if is_ else -1)]


def _count(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _same(one: Value, other: Value) -> bool:
    one, other = normal(one), normal(other)
    return one is other or one == other
