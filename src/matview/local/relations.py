"""Relational expressions over few rows.

A join begins with the side that is at hand, whose values say which rows of the other side are wanted: tables are looked
up, and only small ones read whole. Where that cannot be, or rows become many, NotLocal is raised: Spark shall do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol

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
    parts,
)
from matview.algebra.origins import origins
from matview.algebra.scalars import columns_in, conjuncts
from matview.local.aggregates import aggregated
from matview.local.kinds import Kind, NotLocal, Value, kind_of, normal, widest
from matview.local.scalars import Row, Scope, scalar, tabulated

MOST_ROWS = 50_000
"""More rows than these at any place are for Spark."""
MOST_CHANGED = 20_000
"""Changes are read here up to so many tuples."""
MOST_PAIRS = 10 * MOST_ROWS
"""So are more pairs of rows that a join has to look at."""
SMALL_TABLE = 1_000
"""A table of so few rows is read whole."""


@dataclass(frozen=True)
class Rows:
    """A bag of rows, and what their columns are."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: Sequence[Row]

    def __post_init__(self) -> None:
        if len(self.rows) > MOST_ROWS:
            raise NotLocal("many rows")

    @property
    def scope(self) -> Scope:
        return Scope.of(self.names, self.kinds)

    def values(self, name: str) -> frozenset[Value]:
        return frozenset(key for (key,) in map(self.keyed([name]), self.rows))

    def keyed(self, names: Sequence[str]) -> Callable[[Row], Row]:
        """What some columns of a row have, as groups and joins see it."""
        places = [self.names.index(name) for name in names]
        if not all(self.kinds[place].is_ordered for place in places):
            return lambda row: tuple([normal(row[place]) for place in places])
        return _of_places(places)


def _of_places(places: Sequence[int]) -> Callable[[Row], Row]:
    """A row of what a row has in these places."""
    if len(places) > 1:
        return itemgetter(*places)
    return (lambda row: (row[places[0]],)) if places else lambda _: ()


@dataclass(frozen=True)
class Wanted:
    """Only rows with one of these values in a column are asked for; others may come along."""

    name: str
    values: frozenset[Value]


class Reader(Protocol):
    """Where rows come from; each may raise NotLocal. Columns are named as those of the leaf."""

    def change(self, leaf: Change) -> Rows: ...
    def scan(self, leaf: Scan, wanted: Wanted | None) -> Rows: ...
    def stored(self, leaf: Stored, wanted: Wanted | None) -> Rows: ...


_COMPUTED = (Scan, Change, Stored, Values, Filter, Project, Aggregate, Repeat, TopK, Join, Semi, UnionAll)


def may_be_computed(node: Node) -> bool:
    """Whether all of its operators are among those that are computed here; its expressions may not be."""
    return all(isinstance(part, _COMPUTED) or (isinstance(part, Outer) and part.kind == "left") for part in parts(node))


def is_led(node: Node, sizes: Callable[[str], int]) -> bool:
    """Whether what is at hand leads to all that is read: no table but a small one is read whole."""
    known: dict[Node, bool] = {}

    def led(node: Node) -> bool:
        if node not in known:
            known[node] = _is_led(node, led, sizes)
        return known[node]

    return led(node)


def _is_led(node: Node, led: Callable[[Node], bool], sizes: Callable[[str], int]) -> bool:
    match node:
        case Change() | Values():
            return True
        case Scan(name) | Stored(name):
            return sizes(name) <= SMALL_TABLE
        case Join(parts):
            return any(map(led, parts))
        case Semi(kind, left, right):
            return led(left) or (kind == "semi" and led(right))
        case Outer(_, left, _):
            return led(left)
    return all(map(led, node.inputs))


def evaluated(node: Node, reader: Reader) -> Rows:
    """The rows of a node."""
    return _Evaluation(reader).of(node, None)


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
            if not right.rows:
                return Rows(node.left.names, tuple(kind_of(field.type) for field in node.left.fields), ())
            left = self._looked_up(right, node.left, on)
        else:
            right = self._looked_up(left, node.right, on)
        return _outer(left, right, on) if isinstance(node, Outer) else _semi(left, right, on, node.kind)


def _within(node: Node, place: int, wanted: Wanted | None) -> Wanted | None:
    """What is wanted of an input, if that is a matter of one of its columns."""
    if wanted is None:
        return None
    return next((Wanted(name, wanted.values) for at, name in origins(node, wanted.name) if at == place), None)


# row by row -----------------------------------------------------------------------------------------------------------


def _written_out(node: Values) -> Rows:
    cells = [[scalar(cell, Scope({})) for cell in row] for row in node.rows]
    kinds = tuple(widest(kind_of(f.type), *(row[i].kind for row in cells)) for i, f in enumerate(node.fields))
    return Rows(node.names, kinds, [tuple(cell.of(()) for cell in row) for row in cells])


def _filtered(given: Rows, condition: exp.Expr) -> Rows:
    holds = scalar(condition, given.scope).of
    return Rows(given.names, given.kinds, [row for row in given.rows if holds(row)])


def _all_filtered(given: Rows, conditions: Iterable[exp.Expr]) -> Rows:
    for condition in conditions:
        given = _filtered(given, condition)
    return given


def _projected(given: Rows, outputs: Sequence[tuple[str, exp.Expr]]) -> Rows:
    scope = given.scope
    made = [scalar(expression, scope) for _, expression in outputs]
    columns = tabulated(made, given.rows)
    rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * len(given.rows)
    return Rows(tuple(name for name, _ in outputs), tuple(one.kind for one in made), rows)


def _arranged(given: Rows, names: tuple[str, ...]) -> Rows:
    if names == given.names:
        return given
    places = [given.names.index(name) for name in names]
    return Rows(names, tuple(given.kinds[p] for p in places), list(map(_of_places(places), given.rows)))


def _union(node: UnionAll, parts: Sequence[Rows]) -> Rows:
    kinds = tuple(widest(*(part.kinds[i] for part in parts)) for i in range(len(node.names)))
    if any(kind.name == "decimal" and any(p.kinds[i] != kind for p in parts) for i, kind in enumerate(kinds)):
        raise NotLocal("a union of different decimals")
    return Rows(node.names, kinds, [row for part in parts for row in part.rows])


def _repeated(given: Rows, times: str) -> Rows:
    place = given.names.index(times)
    names = tuple(name for name in given.names if name != times)
    kinds = tuple(kind for i, kind in enumerate(given.kinds) if i != place)
    if sum(max(0, int(row[place] or 0)) for row in given.rows) > MOST_ROWS:
        raise NotLocal("many rows")
    rows = [(*row[:place], *row[place + 1 :]) for row in given.rows for _ in range(max(0, int(row[place] or 0)))]
    return Rows(names, kinds, rows)


def _topmost(given: Rows, node: TopK) -> Rows:
    """Sorted by the last of the order first: a sort keeps what was before among equals."""
    rows = list(given.rows)
    for one in reversed(node.order):
        found = scalar(one.this, given.scope)
        if not (isinstance(one, exp.Ordered) and found.kind.is_ordered):
            raise NotLocal("an order for Spark to find")
        values: Callable[[Row], Any] = found.of
        nulls, there = [row for row in rows if values(row) is None], [row for row in rows if values(row) is not None]
        there.sort(key=values, reverse=bool(one.args.get("desc")))
        rows = [*nulls, *there] if one.args.get("nulls_first") else [*there, *nulls]
    return Rows(given.names, given.kinds, rows[node.offset : node.offset + node.limit])


# groups ---------------------------------------------------------------------------------------------------------------


def _grouped(given: Rows, keys: Sequence[str], aggregates: Sequence[tuple[str, exp.Expr]]) -> Rows:
    places = [given.names.index(key) for key in keys]
    groups: dict[Row, list[Row]] = {} if keys else {(): []}
    for key, row in zip(map(given.keyed(keys), given.rows), given.rows, strict=True):
        groups.setdefault(key, []).append(row)
    scope = given.scope
    made = [aggregated(expression, scope) for _, expression in aggregates]
    rows = [(*key, *(one.of(members) for one in made)) for key, members in groups.items()]
    names = (*keys, *(name for name, _ in aggregates))
    return Rows(names, (*(given.kinds[p] for p in places), *(one.kind for one in made)), rows)


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


@dataclass(frozen=True)
class _Match:
    """Which rows of the right meet a row of the left."""

    left: Rows
    right: Rows
    on: Sequence[exp.Expr]

    def __post_init__(self) -> None:
        """What is compared must be of kinds that can be, whether there are rows or not."""
        for condition in self.on:
            scalar(condition, self._scope)

    @property
    def _scope(self) -> Scope:
        return Scope.of((*self.left.names, *self.right.names), (*self.left.kinds, *self.right.kinds))

    def finder(self) -> Callable[[Row], list[Row]]:
        """By the values of equal columns first; what else there is to hold is then looked at."""
        pairs = [(p, c) for c in self.on if (p := _equated(c, self.left.names, self.right.names)) is not None]
        mine = self.left.keyed([pair[0] for pair, _ in pairs])
        theirs = self.right.keyed([pair[1] for pair, _ in pairs])
        needed = [place for place, (_, condition) in enumerate(pairs) if isinstance(condition, exp.EQ)]
        known: dict[Row, list[Row]] = {}
        for key, row in zip(map(theirs, self.right.rows), self.right.rows, strict=True):
            known.setdefault(key, []).append(row)
        looked_up = {id(condition) for _, condition in pairs}
        holds = [scalar(condition, self._scope).of for condition in self.on if id(condition) not in looked_up]

        looked_at = 0

        def found(row: Row) -> list[Row]:
            nonlocal looked_at
            wanted = mine(row)
            if None in wanted and any(wanted[place] is None for place in needed):
                return []
            near = known.get(wanted, [])
            looked_at += len(near)
            if looked_at > MOST_PAIRS:
                raise NotLocal("many pairs of rows")
            return [other for other in near if all(hold((*row, *other)) for hold in holds)] if holds else near

        return found


def _joined(left: Rows, right: Rows, on: Sequence[exp.Expr]) -> Rows:
    found = _Match(left, right, on).finder()
    rows: list[Row] = []
    for row in left.rows:
        rows += [(*row, *other) for other in found(row)]
        if len(rows) > MOST_ROWS:
            raise NotLocal("many rows")
    return Rows((*left.names, *right.names), (*left.kinds, *right.kinds), rows)


def _semi(left: Rows, right: Rows, on: Sequence[exp.Expr], kind: str) -> Rows:
    found, meets = _Match(left, right, on).finder(), kind == "semi"
    return Rows(left.names, left.kinds, [row for row in left.rows if bool(found(row)) is meets])


def _outer(left: Rows, right: Rows, on: Sequence[exp.Expr]) -> Rows:
    found, nobody = _Match(left, right, on).finder(), [(None,) * len(right.names)]
    rows: list[Row] = [(*row, *other) for row in left.rows for other in found(row) or nobody]
    return Rows((*left.names, *right.names), (*left.kinds, *right.kinds), rows)
