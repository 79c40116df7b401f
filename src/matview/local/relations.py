"""Relational expressions over few rows.

A join begins with the side that is at hand, whose values say which rows of the other side are wanted: tables are looked
up, and only small ones read whole. Where that cannot be, or rows become many, NotLocal is raised: Spark shall do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from matview.algebra.nodes import (
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Outer,
    Project,
    Repeat,
    Scan,
    Semi,
    Stored,
    TopK,
    UnionAll,
    Values,
)
from matview.algebra.origins import origins
from matview.algebra.scalars import columns_in, conjuncts
from matview.local.aggregates import Folded, grouped
from matview.local.batch import Batch, beside, kernel
from matview.local.kinds import Kind, NotLocal, arrow_of, kind_of, widest
from matview.local.matching import Pairs, alike, all_pairs, equal_pairs
from matview.local.reach import MOST_BYTES, MOST_ROWS, SMALL_TABLE
from matview.local.scalars import Scope, condition_of, converted, scalar


@dataclass(frozen=True)
class Rows:
    """A bag of so many rows in columns, and what the columns are."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    columns: tuple[pa.Array, ...]
    size: int
    _values: dict[str, pa.Array] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        no_more_than_most(self.size)
        if self.size > SMALL_TABLE and sum(column.nbytes for column in self.columns) > MOST_BYTES:
            raise NotLocal("rows that take much memory")

    @classmethod
    def of(cls, names: Sequence[str], kinds: Sequence[Kind], batch: Batch) -> Rows:
        no_more_than_most(batch.size)
        return cls(tuple(names), tuple(kinds), tuple(map(batch.column, range(len(names)))), batch.size)

    @property
    def scope(self) -> Scope:
        return Scope.of(self.names, self.kinds)

    @property
    def batch(self) -> Batch:
        return Batch.of(self.columns, self.size)

    def column(self, name: str) -> pa.Array:
        return self.columns[self.names.index(name)]

    def kind(self, name: str) -> Kind:
        return self.kinds[self.names.index(name)]

    def values(self, name: str) -> pa.Array:
        """Those of a column, each once, as groups and joins see them."""
        if name not in self._values:
            self._values[name] = alike(self.column(name)).unique()
        return self._values[name]

    def taken(self, places: pa.Array) -> Rows:
        return Rows.of(self.names, self.kinds, self.batch.taken(places))


def no_more_than_most(rows: int) -> None:
    """NotLocal if there are more."""
    if rows > MOST_ROWS:
        raise NotLocal("many rows")


@dataclass(frozen=True, eq=False)
class Wanted:
    """Only rows with one of these values in a column are asked for; others may come along."""

    name: str
    values: pa.Array

    def among(self, kind: pa.DataType) -> pa.Array:
        """The values, to be looked up in a column of a type; NotLocal if they are of another, but for whole numbers."""
        if self.values.type != kind and not (pa.types.is_integer(self.values.type) and pa.types.is_integer(kind)):
            raise NotLocal(f"values of type {self.values.type} are not looked up in {kind}")
        return converted(self.values, kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wanted) and self.name == other.name and self.values is other.values

    def __hash__(self) -> int:
        return hash((self.name, id(self.values)))


class Reader(Protocol):
    """Where rows come from; each may raise NotLocal. Columns are named as those of the leaf."""

    def change(self, leaf: Change) -> Rows: ...
    def scan(self, leaf: Scan, wanted: Wanted | None) -> Rows: ...
    def stored(self, leaf: Stored, wanted: Wanted | None) -> Rows: ...


def evaluated(node: Node, reader: Reader) -> Rows:
    """The rows of a node."""
    return _Evaluation(reader).of(node, None)


def rehearsed(node: Node) -> Rows:
    """The node over no rows at all: NotLocal if it is not for the driver to compute, before anything is read for it."""
    return evaluated(node, _Nothing())


class _Nothing:
    """A reader of empty tables."""

    def change(self, leaf: Change) -> Rows:
        return none_of(leaf)

    def scan(self, leaf: Scan, _: Wanted | None) -> Rows:
        return none_of(leaf)

    def stored(self, leaf: Stored, _: Wanted | None) -> Rows:
        return none_of(leaf)


@dataclass
class _Evaluation:
    """Each part is computed once for the same rows wanted, in however many places it stands."""

    reader: Reader
    _known: dict[tuple[Node, Wanted | None], Rows] = field(default_factory=dict)

    def of(self, node: Node, wanted: Wanted | None) -> Rows:
        if (node, wanted) not in self._known:
            self._known[node, wanted] = self._computed(node, wanted)
        return self._known[node, wanted]

    def _computed(self, node: Node, wanted: Wanted | None) -> Rows:
        match node:
            case Change():
                return self.reader.change(node)
            case Scan():
                return self.reader.scan(node, wanted)
            case Stored():
                return self.reader.stored(node, wanted)
            case Values():
                return _written_out(node)
            case Join():
                return self._join(node, wanted)
            case Semi() | Outer("left"):
                return self._beside(node, wanted)
            case TopK():
                return _topmost(self.of(node.input, None), node)
            case UnionAll(parts):
                return _union(node, [self.of(part, _within(node, place, wanted)) for place, part in enumerate(parts)])
        return self._unary(node, wanted)

    def _unary(self, node: Node, wanted: Wanted | None) -> Rows:
        if not isinstance(node, Filter | Project | Aggregate | Repeat):
            raise NotLocal(f"{type(node).__name__} is for Spark to compute")
        given = self.of(node.input, _within(node, 0, wanted))
        match node:
            case Filter(_, condition):
                return _filtered(given, condition)
            case Project(_, outputs):
                return _projected(given, outputs)
            case Aggregate(_, keys, aggregates):
                return _grouped(given, keys, aggregates)
            case Repeat(_, times):
                return _repeated(given, times)

    def _join(self, node: Join, wanted: Wanted | None) -> Rows:
        """From the first part on that can be had, along the conditions."""
        first = self._first(node, wanted)
        made = self.of(node.parts[first], _within(node, first, wanted))
        for place, part in enumerate(node.parts):
            if place == first:
                continue
            known = {*made.names, *part.names}
            on = [c for c in node.on if columns_in(c) <= known and columns_in(c) & set(part.names)]
            made = _joined(made, self._looked_up(made, part, on), on)
        inner = [c for c in node.on if columns_in(c) <= set(node.parts[first].names)]
        return _arranged(_all_filtered(made, inner), node.names)

    def _first(self, node: Join, wanted: Wanted | None) -> int:
        for place, part in enumerate(node.parts):
            try:
                self.of(part, _within(node, place, wanted))
            except NotLocal:
                continue
            return place
        raise NotLocal("tables that nothing restricts")

    def _looked_up(self, there: Rows, part: Node, on: Iterable[exp.Expr]) -> Rows:
        """The rows of a part that may meet those there."""
        pairs = [pair for condition in on if (pair := _equated(condition, there.names, part.names)) is not None]
        for here, other in pairs:
            try:
                return self.of(part, Wanted(other, there.values(here)))
            except NotLocal:
                continue
        return self.of(part, None)

    def _beside(self, node: Semi | Outer, wanted: Wanted | None) -> Rows:
        """The left first, which says what is wanted of the right; or, in a semi join, the other way round."""
        on = conjuncts(node.on)
        try:
            left = self.of(node.left, _within(node, 0, wanted))
        except NotLocal:
            if not (isinstance(node, Semi) and node.kind == "semi"):
                raise
            right = self.of(node.right, None)
            if not right.size:
                return none_of(node.left)
            left = self._looked_up(right, node.left, on)
        else:
            right = self._looked_up(left, node.right, on)
        return _outer(left, right, on) if isinstance(node, Outer) else _semi(left, right, on, node.kind)


def _within(node: Node, place: int, wanted: Wanted | None) -> Wanted | None:
    """What is wanted of an input, if that is a matter of one of its columns."""
    if wanted is None:
        return None
    return next((Wanted(name, wanted.values) for at, name in origins(node, wanted.name) if at == place), None)


# one relation ---------------------------------------------------------------------------------------------------------


def none_of(node: Node) -> Rows:
    """No rows, in the columns of a node."""
    kinds = tuple(kind_of(field.type) for field in node.fields)
    return Rows(node.names, kinds, tuple(pa.array([], arrow_of(kind)) for kind in kinds), 0)


def _written_out(node: Values) -> Rows:
    nobody = Batch.of((), 1)
    cells = [[scalar(cell, Scope({})) for cell in row] for row in node.rows]
    kinds = tuple(widest(kind_of(f.type), *(row[i].kind for row in cells)) for i, f in enumerate(node.fields))
    columns = tuple(
        pa.concat_arrays([pa.array([], arrow_of(kind)), *(row[i].held_as(kind).rows(nobody) for row in cells)])
        for i, kind in enumerate(kinds)
    )
    return Rows(node.names, kinds, columns, len(cells))


def _filtered(given: Rows, condition: exp.Expr) -> Rows:
    return Rows.of(given.names, given.kinds, given.batch.where(condition_of(condition, given.scope).of))


def _all_filtered(given: Rows, conditions: Iterable[exp.Expr]) -> Rows:
    for condition in conditions:
        given = _filtered(given, condition)
    return given


def _projected(given: Rows, outputs: Sequence[tuple[str, exp.Expr]]) -> Rows:
    scope, batch = given.scope, given.batch
    made = [scalar(expression, scope) for _, expression in outputs]
    columns = tuple(one.rows(batch) for one in made)
    return Rows(tuple(name for name, _ in outputs), tuple(one.kind for one in made), columns, given.size)


def _arranged(given: Rows, names: tuple[str, ...]) -> Rows:
    places = [given.names.index(name) for name in names]
    return Rows(names, tuple(given.kinds[p] for p in places), tuple(given.columns[p] for p in places), given.size)


def _union(node: UnionAll, parts: Sequence[Rows]) -> Rows:
    kinds = tuple(widest(*(part.kinds[i] for part in parts)) for i in range(len(node.names)))
    if any(kind.name == "decimal" and any(p.kinds[i] != kind for p in parts) for i, kind in enumerate(kinds)):
        raise NotLocal("a union of different decimals")
    columns = tuple(
        pa.concat_arrays([converted(part.columns[i], arrow_of(kind)) for part in parts]) for i, kind in enumerate(kinds)
    )
    return Rows(node.names, kinds, columns, sum(part.size for part in parts))


def _repeated(given: Rows, times: str) -> Rows:
    kept = tuple(name for name in given.names if name != times)
    return repeated(_arranged(given, kept), given.column(times))


def repeated(given: Rows, times: pa.Array) -> Rows:
    """Each row so many times; none at all if that is unknown or negative."""
    if not (pa.types.is_integer(times.type) or pa.types.is_null(times.type)):
        raise NotLocal("a number of times that is not whole")
    counts = times.to_pylist()
    if all(count == 1 for count in counts):
        return given
    counts = [max(0, count or 0) for count in counts]
    no_more_than_most(sum(counts))
    return given.taken(pa.array(chain.from_iterable(map(repeat, range(given.size), counts)), pa.int32()))


def _topmost(given: Rows, node: TopK) -> Rows:
    """Whether a value is null decides first, which puts nulls where the order says."""
    columns, keys = dict[str, pa.Array](), list[tuple[str, str]]()
    for i, one in enumerate(node.order):
        found = scalar(one.this, given.scope)
        if not (isinstance(one, exp.Ordered) and found.kind.is_ordered):
            raise NotLocal("an order for Spark to find")
        values = found.rows(given.batch)
        columns |= {f"null{i}": values.is_null(), f"value{i}": values}
        keys += [(f"null{i}", _direction(one, "nulls_first")), (f"value{i}", _direction(one, "desc"))]
    order = kernel("sort_indices", pa.table(columns), options=pc.SortOptions(keys))
    return given.taken(order[node.offset : node.offset + node.limit])


def _direction(one: exp.Ordered, argument: str) -> str:
    return "descending" if one.args.get(argument) else "ascending"


def _grouped(given: Rows, keys: Sequence[str], aggregates: Sequence[tuple[str, exp.Expr]]) -> Rows:
    folded = [Folded.of(expression, given.scope) for _, expression in aggregates]
    columns = grouped(given.batch, [given.column(key) for key in keys], folded)
    kinds = (*map(given.kind, keys), *(one.outer.kind for one in folded))
    size = len(columns[0]) if columns else 1
    return Rows((*keys, *(name for name, _ in aggregates)), kinds, tuple(columns), size)


# two relations --------------------------------------------------------------------------------------------------------

Pair = tuple[str, str]


def _equated(condition: exp.Expr, here: Sequence[str], there: Sequence[str]) -> Pair | None:
    """The columns that a condition sets equal, the one here first."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return None
    one, other = condition.left.unnest(), condition.right.unnest()
    if not (isinstance(one, exp.Column) and isinstance(other, exp.Column)):
        return None
    if one.name in here and other.name in there:
        return one.name, other.name
    return (other.name, one.name) if other.name in here and one.name in there else None


def _met(left: Rows, right: Rows, on: Sequence[exp.Expr]) -> Pairs:
    """By the values of equal columns first; what else there is to hold is then looked at."""
    scope = Scope.of((*left.names, *right.names), (*left.kinds, *right.kinds))
    tests = [condition_of(condition, scope) for condition in on]  # what cannot be compared is not, rows or no rows
    equated = [_equated(condition, left.names, right.names) for condition in on]
    found = _equal(left, right, [(p, c) for p, c in zip(equated, on, strict=True) if p is not None])
    for pair, test in zip(equated, tests, strict=True):
        if pair is None:
            found = found.where(test.rows(_beside(left, right, found)))
    return found


def _equal(left: Rows, right: Rows, pairs: Sequence[tuple[Pair, exp.Expr]]) -> Pairs:
    if not pairs:
        return all_pairs(left.size, right.size)
    kinds = [arrow_of(widest(left.kind(one), right.kind(other))) for (one, other), _ in pairs]
    mine = [converted(left.column(p[0]), kind) for (p, _), kind in zip(pairs, kinds, strict=True)]
    theirs = [converted(right.column(p[1]), kind) for (p, _), kind in zip(pairs, kinds, strict=True)]
    return equal_pairs(mine, theirs, [isinstance(c, exp.EQ) for _, c in pairs])


def _beside(left: Rows, right: Rows, found: Pairs) -> Batch:
    return beside(len(found.here), (left.columns, found.here), (right.columns, found.there))


def _together(left: Rows, right: Rows, found: Pairs) -> Rows:
    return Rows.of((*left.names, *right.names), (*left.kinds, *right.kinds), _beside(left, right, found))


def _joined(left: Rows, right: Rows, on: Sequence[exp.Expr]) -> Rows:
    return _together(left, right, _met(left, right, on))


def _outer(left: Rows, right: Rows, on: Sequence[exp.Expr]) -> Rows:
    return _together(left, right, _met(left, right, on).and_others(left.size))


def _semi(left: Rows, right: Rows, on: Sequence[exp.Expr], kind: str) -> Rows:
    found = _met(left, right, on)
    return left.taken(found.here.unique() if kind == "semi" else found.others(left.size))
