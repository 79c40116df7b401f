"""Random histories of one table with their oracle: the logical relation at every version, kept as whole copies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from matview.algebra.schema import Column, Schema
from matview.errors import DuplicateKey, ImpossibleOperation
from matview.versions.decide import Held, delete, insert, update
from matview.versions.facts import Facts
from matview.versions.layout import BASE, COUNT, LEVEL, OVERLAY, RID, Layout
from matview.versions.tuples import Operation, Slot, Unread, Values, VersionedTuple

KEYED = Schema((Column("se`lect", "int"), Column("a b", "int"), Column('x."y', "int")), key=("se`lect",))
BAG = Schema((Column("größe.m", "int"),))

Logical = dict[Values, Values]


@dataclass(frozen=True)
class Step:
    """One operation, whether or not it is possible when its turn comes."""

    act: Operation
    key: int
    new: Values


@dataclass(frozen=True)
class Transaction:
    steps: tuple[Step, ...]
    commits: bool = True
    folds: bool = False


@dataclass(frozen=True)
class Case:
    """One decision that a history met: the tuple before, what was asked, and what came of it (None: impossible)."""

    before: VersionedTuple | None
    step: Step
    vn: int
    after: Held | None


@dataclass
class History:
    """A table of n versions: stored tuples by key, the logical relation at each version, the physical rows."""

    layout: Layout
    tuples: dict[int, VersionedTuple] = field(default_factory=dict)
    current_vn: int = 1
    logical: dict[int, Logical] = field(default_factory=lambda: {1: {}})
    cases: list[Case] = field(default_factory=list)
    base: dict[int, VersionedTuple] = field(default_factory=dict)
    overlay: dict[tuple[int, int], VersionedTuple] = field(default_factory=dict)

    def run(self, transaction: Transaction) -> None:
        vn = self.current_vn + 1
        held = self.hold(transaction, vn)
        if not transaction.commits:
            return
        self.store(held, vn, fold=transaction.folds)
        self.current_vn = vn
        self.logical[vn] = {t.fixed: t.current for t in self.tuples.values() if t.newest.operation in (1, 2)}

    def hold(self, transaction: Transaction, vn: int) -> dict[int, Held]:
        """The tuples that the transaction touches, after its last step; its oracle is a plain dictionary."""
        held: dict[int, Held] = {}
        oracle = dict(self.logical[self.current_vn])
        for step in transaction.steps:
            before = held.get(step.key, Held.of(self.tuples.get(step.key)))
            after = self.apply(before, step, vn)
            self.cases.append(Case(before.now, step, vn, after))
            assert (after is not None) == _possible(oracle, step), (before, step)
            if after is not None:
                held[step.key] = after
                oracle.pop((step.key,), None)
                if step.act is not Operation.DELETE:
                    oracle[(step.key,)] = step.new
        return held

    def apply(self, before: Held, step: Step, vn: int) -> Held | None:
        try:
            match step.act:
                case Operation.INSERT:
                    return insert(before, (step.key,), step.new, vn, self.layout.slots)
                case Operation.UPDATE:
                    return update(before, step.new, vn)
                case _:
                    return delete(before, vn)
        except (DuplicateKey, ImpossibleOperation):
            return None

    def store(self, held: dict[int, Held], vn: int, *, fold: bool) -> None:
        """A new tuple goes to base files, a changed one to the overlay; folding makes base files of all."""
        for key, pair in held.items():
            if pair.now is None or pair.now == pair.stored:
                continue
            self.tuples[key] = pair.now
            if pair.stored is None:
                self.base[key] = pair.now
            else:
                self.overlay[key, vn] = pair.now
        if fold:
            self.base, self.overlay = dict(self.tuples), {}

    def rows(self) -> list[dict[str, object]]:
        base = [physical(self.layout, key, t) | {LEVEL: BASE} for key, t in self.base.items()]
        later = [physical(self.layout, key, t) | {LEVEL: OVERLAY} for (key, _), t in self.overlay.items()]
        return base + later

    def facts(self) -> Facts:
        """What file statistics would say of the rows."""
        return facts_of(self.layout, self.rows())


def _possible(oracle: Logical, step: Step) -> bool:
    return ((step.key,) in oracle) != (step.act is Operation.INSERT)


def facts_of(layout: Layout, rows: list[dict[str, object]]) -> Facts:
    def greatest(*columns: str) -> int:
        return max((int(row[c]) for row in rows for c in columns if row[c] is not None), default=0)  # type: ignore[call-overload]

    counts = [COUNT, *(layout.pre(i, COUNT) for i in layout.slot_numbers)] if layout.schema.is_bag else []
    return Facts(
        tuple(greatest(layout.vn(i)) for i in layout.slot_numbers),
        greatest(layout.op(1)),
        any(row[LEVEL] == OVERLAY for row in rows),
        greatest(*counts),
    )


def physical(layout: Layout, rid: int, tuple_: VersionedTuple) -> dict[str, object]:
    """A tuple as the stored columns hold it."""
    row: dict[str, object] = dict.fromkeys(name for name, _ in layout.columns)
    row |= {RID: rid} | dict(zip(layout.fixed, tuple_.fixed, strict=True))
    row |= dict(zip(layout.updatable, tuple_.current, strict=True))
    for i, slot in enumerate(tuple_.slots, start=1):
        row |= {layout.vn(i): slot.vn, layout.op(i): int(slot.operation)}
        pre = slot.pre or (None,) * len(layout.updatable)
        row |= {layout.pre(i, c): v for c, v in zip(layout.updatable, pre, strict=True)}
    return row


def shifted(tuple_: VersionedTuple, by: int) -> VersionedTuple:
    """The same tuple in a history that began `by` versions later."""
    return replace(tuple_, slots=tuple(replace(s, vn=s.vn + by) for s in tuple_.slots))


_ARROW = {"int": pa.int32(), "bigint": pa.int64(), "tinyint": pa.int8(), "string": pa.string(), "date": pa.date32()}


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One for all tests: to open one for each example would take most of the time."""
    return duckdb.connect(config={"threads": 1})


def register(name: str, columns: list[tuple[str, str]], rows: list[dict[str, object]]) -> None:
    """A view of that name over the rows in DuckDB."""
    schema = pa.schema([(c, _ARROW[t]) for c, t in columns])
    database().register(name, pa.Table.from_pylist(rows, schema))


def register_stored(layout: Layout, rows: list[dict[str, object]], prefix: str = "") -> None:
    """`stored` and `overlay`, as a snapshot's files would be."""
    columns = [*layout.columns, (LEVEL, "string")]
    register(f"{prefix}stored", columns, rows)
    register(f"{prefix}overlay", columns, [row for row in rows if row[LEVEL] == OVERLAY])


def fetch(sql: str) -> list[tuple[object, ...]]:
    """The rows of a query in DuckDB's dialect."""
    return database().execute(sql).fetchall()


def fetch_named(sql: str) -> list[dict[str, object]]:
    cursor = database().execute(sql)
    names = [column[0] for column in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


# strategies -----------------------------------------------------------------------------------------------------------

_KEYS = st.integers(0, 2)
_VALUES = st.one_of(st.none(), st.integers(0, 3))
_ACTS = st.sampled_from([Operation.INSERT, Operation.UPDATE, Operation.DELETE])


def transactions(schema: Schema) -> st.SearchStrategy[list[Transaction]]:
    """Up to eight transactions with up to six steps each, on so few keys that they meet."""
    new = st.tuples(st.integers(1, 3)) if schema.is_bag else st.tuples(_VALUES, _VALUES)
    steps = st.lists(st.builds(Step, _ACTS, _KEYS, new), max_size=6).map(tuple)
    commits = st.sampled_from([True, True, True, False])
    return st.lists(st.builds(Transaction, steps, commits, st.booleans()), min_size=1, max_size=8)


def histories(*schemas: Schema) -> st.SearchStrategy[tuple[Layout, list[Transaction]]]:
    layouts = st.builds(Layout, st.sampled_from(schemas), st.integers(2, 5))
    return layouts.flatmap(lambda layout: st.tuples(st.just(layout), transactions(layout.schema)))


# rollback from the tuples alone ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reverted:
    """What one tuple alone tells of its state before its newest change: values (None: not there), and since when.

    A model only. Pulling the slots forward leaves the last one empty, which would claim that nothing was ever pushed
    out of it; so the version from which the tuple can be told has to be carried along. Matview's storage does better:
    a transaction only adds files, so dropping them brings back the rows as they were, pushed-out slots and all.
    """

    current: Values | None
    slots: tuple[Slot, ...]
    told_since: int

    def read(self, session_vn: int) -> Values | Unread:
        if session_vn < self.told_since:
            return Unread.EXPIRED
        later = [slot for slot in self.slots if slot.vn > session_vn]
        found = later[-1].pre if later else self.current
        return Unread.IGNORE if found is None else found


def revert(tuple_: VersionedTuple, vn: int) -> Reverted:
    """The tuple without what transaction `vn` did to it, as far as it can tell."""
    told_since = tuple_.slots[-1].vn - 1 if tuple_.full else 0
    live = tuple_.newest.operation in (Operation.INSERT, Operation.UPDATE)
    if tuple_.newest.vn != vn:
        return Reverted(tuple_.current if live else None, tuple_.slots, told_since)
    return Reverted(tuple_.newest.pre, tuple_.slots[1:], told_since)
