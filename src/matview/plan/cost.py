"""What an expression costs, in seconds on the machine at hand once calibrated: a few rates, applied bottom up.

The rates were measured on two cores, where an empty write takes 0.1 s. What refreshes really took corrects them, per
view and strategy (see choice.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from matview.algebra.nodes import (
    WEIGHT,
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Opaque,
    Outer,
    Scan,
    Semi,
    SetOp,
    Stored,
    Unnest,
    Values,
    Window,
    rebuilt,
    walk,
)
from matview.algebra.scalars import columns_in, conjuncts


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds: what a look-up of stored rows and each relation read take before the first row, then those per row. A
    row is written with all that is done to it, and to the stored one that it meets."""

    look_up: float
    read: float
    scan: float
    probe: float
    shuffle: float
    group: float
    sort: float
    write: float


ON_SPARK = Rates(0.4, 0.2, scan=1.0e-7, probe=0.6e-7, shuffle=7.0e-7, group=2.5e-7, sort=9.0e-7, write=5.0e-6)
ON_THE_DRIVER = Rates(0.02, 0.01, scan=2.0e-8, probe=0.0, shuffle=0.0, group=2.5e-7, sort=9.0e-7, write=5.0e-6)
"""Tables are looked up there: rows that are passed by cost little, those that are met are counted as written."""
REBUILD, REWRITE = 0.1, 0.4e-6
"""Before the first row, and for each, where rows are computed anew and nothing stored has to be met."""
SENT = 200_000
SELECTIVITY = 0.3
FANOUT = 4.0


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What is known about a table: how large it is, how many tuples changed, whether rows only came.

    `updated` are the columns that updates touched.
    """

    rows: int
    size: int
    changed: int = 0
    only_inserts: bool = True
    updated: frozenset[str] = frozenset()


ROW_BYTES = 100
UNKNOWN_ROWS = 50_000_000
"""So many are supposed where nobody knows: too many for anything that is done with small tables alone."""


def staying(rows: int) -> TableFacts:
    """A table that stays at its source, of about so many rows when it was added; 0 if it had none or none were told."""
    rows = rows or UNKNOWN_ROWS
    return TableFacts(rows, rows * ROW_BYTES)


@dataclass(frozen=True, slots=True)
class Estimate:
    rows: float
    seconds: float

    def and_then(self, rows: float, seconds: float) -> Estimate:
        return Estimate(rows, self.seconds + seconds)


class Estimates:
    """What expressions over the same tables take; each part is looked at once, in however many places it stands."""

    def __init__(self, facts: Mapping[str, TableFacts], rates: Rates = ON_SPARK) -> None:
        self.facts = facts
        self.rates = rates
        self._known: dict[Node, Estimate] = {}
        self._arranged: dict[Node, Node] = {}

    def of(self, node: Node) -> Estimate:
        """Rows that come out, and seconds that all of it takes."""
        if node not in self._known:
            self._known[node] = _estimate(node, self)
        return self._known[node]

    def arranged(self, node: Node) -> Node:
        """The same, where joins of two say which side is small and therefore sent to the other."""
        if node not in self._arranged:
            self._arranged[node] = _arranged(node, self)
        return self._arranged[node]


def _estimate(node: Node, estimates: Estimates) -> Estimate:
    facts, rates = estimates.facts, estimates.rates
    match node:
        case Scan(table):
            return _read(facts[table].rows, rates)
        case Change(scan):
            return _read(1.5 * facts[scan.table].changed, rates)
        case Stored(view):
            return _read(facts[view].rows, rates)
        case Values(_, rows):
            return Estimate(len(rows), 0.0)
        case Opaque():
            size = sum(facts[name].rows for name in node.reads)
            return Estimate(size, rates.read * len(node.reads) + size * (rates.scan + rates.shuffle))
    inputs = [estimates.of(part) for part in node.inputs]
    return _several(node, inputs, estimates) if len(inputs) > 1 else _unary(node, inputs[0], rates)


def _arranged(node: Node, estimates: Estimates) -> Node:
    node = rebuilt(node, tuple(map(estimates.arranged, node.inputs)))
    match node:
        case Join((left, right)):
            sizes = estimates.of(left).rows, estimates.of(right).rows
            return replace(node, sent=sizes.index(min(sizes)) if min(sizes) <= SENT else None)
        case Semi(_, _, right) | Outer("left", _, right):
            return replace(node, sent=1 if estimates.of(right).rows <= SENT else None)
    return node


def _read(rows: float, rates: Rates) -> Estimate:
    return Estimate(rows, rates.read + rows * rates.scan)


def _unary(node: Node, first: Estimate, rates: Rates) -> Estimate:
    match node:
        case Filter(_, condition) if columns_in(condition) == {WEIGHT}:
            return first  # most of a change is net as it comes
        case Filter():
            return first.and_then(first.rows * SELECTIVITY, 0.0)
        case Unnest():
            return first.and_then(first.rows * FANOUT, 0.0)
        case Aggregate(_, _, aggregates) if WEIGHT in dict(aggregates):
            return first.and_then(first.rows, first.rows * rates.group)
        case Aggregate(_, keys):
            return first.and_then(max(1.0, first.rows * 0.3) if keys else 1.0, first.rows * rates.group)
        case Window():
            return first.and_then(first.rows, first.rows * rates.sort)
    return first


def _several(node: Node, inputs: list[Estimate], estimates: Estimates) -> Estimate:
    (first, second), rates = inputs[:2], estimates.rates
    match node:
        case SetOp():
            both = _together(first, second)
            return Estimate(first.rows, both.seconds + both.rows * rates.group)
        case Outer():
            return Estimate(first.rows, _matched(first, second, 1.0, rates).seconds)
        case Semi(kind, on=on) if not conjuncts(on):  # all of the left, or none of it: most often the anti join's
            return Estimate(0.0, second.seconds) if kind == "semi" else _together(first, second)
        case Semi():
            met = _matched(first, second, 1.0, rates)
            return Estimate(min(first.rows, second.rows * FANOUT), met.seconds)
        case Join(parts, on):
            met = first
            for place, other in enumerate(inputs[1:], 1):
                met = _matched(met, other, _fanout(parts[:place], parts[place], on, estimates), rates)
            return met
    return Estimate(sum(e.rows for e in inputs), sum(e.seconds for e in inputs))


def _together(one: Estimate, other: Estimate) -> Estimate:
    return Estimate(one.rows + other.rows, one.seconds + other.seconds)


def _matched(left: Estimate, right: Estimate, fanout: float, rates: Rates) -> Estimate:
    """A join: the smaller side is sent to the larger if it is small, else both are shuffled."""
    both, small = _together(left, right), min(left.rows, right.rows)
    moving = both.rows * (rates.shuffle if small > SENT else rates.probe)
    return Estimate(left.rows * fanout, both.seconds + moving)


def _fanout(before: tuple[Node, ...], part: Node, on: tuple[exp.Expr, ...], estimates: Estimates) -> float:
    """How many rows of a part each row before it meets: of a key one, by a foreign key the rows of either side over
    the other's; otherwise a guess, and without conditions all."""
    own, facts = set(part.names), estimates.facts
    compared = {name for c in on if isinstance(c, exp.EQ) and columns_in(c) & own for name in columns_in(c)}
    if not any(columns_in(c) & own for c in on):
        return estimates.of(part).rows
    if any(_is_keyed_by(leaf, compared) for leaf in _leaves(part)):
        return 1.0
    keyed = [facts[leaf.table].rows for node in before for leaf in _leaves(node) if _is_keyed_by(leaf, compared)]
    if not keyed:
        return FANOUT
    rows = max((facts[leaf.table].rows for leaf in _leaves(part)), default=0)
    return max(1.0, rows / max(1, *keyed))


def _leaves(node: Node) -> Iterator[Scan]:
    for leaf in walk(node):
        if isinstance(leaf, Scan | Change):
            yield leaf.scan if isinstance(leaf, Change) else leaf


def _is_keyed_by(scan: Scan, names: set[str]) -> bool:
    return bool(scan.key) and set(scan.key) <= names
