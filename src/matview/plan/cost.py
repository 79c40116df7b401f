"""What an expression costs, in seconds on the machine at hand once calibrated: a few rates, applied bottom up.

The rates are for two cores; what refreshes really took corrects them, per view and strategy (see choice.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.nodes import (
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
    walk,
)
from matview.algebra.scalars import columns_in, conjuncts

JOB = 0.35
SCAN = 1.0e-7
PROBE = 0.6e-7
SHUFFLE = 7.0e-7
GROUP = 2.5e-7
SORT = 9.0e-7
WRITE = 2.0e-6
BROADCAST = 500_000
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


@dataclass(frozen=True, slots=True)
class Estimate:
    rows: float
    seconds: float

    def and_then(self, rows: float, seconds: float) -> Estimate:
        return Estimate(rows, self.seconds + seconds)


def estimate(node: Node, facts: Mapping[str, TableFacts]) -> Estimate:
    """Rows that come out, and seconds that all of it takes."""
    match node:
        case Scan(table):
            return _read(facts[table].rows)
        case Change(scan):
            return _read(1.5 * facts[scan.table].changed)
        case Stored(view):
            return _read(facts[view].rows)
        case Values(_, rows):
            return Estimate(len(rows), 0.0)
        case Opaque():
            size = sum(facts[name].rows for name in node.reads)
            return Estimate(size, size * (SCAN + SHUFFLE))
    inputs = [estimate(part, facts) for part in node.inputs]
    return _several(node, inputs) if len(inputs) > 1 else _unary(node, inputs[0])


def _read(rows: float) -> Estimate:
    return Estimate(rows, rows * SCAN)


def _unary(node: Node, first: Estimate) -> Estimate:
    match node:
        case Filter():
            return first.and_then(first.rows * SELECTIVITY, 0.0)
        case Unnest():
            return first.and_then(first.rows * FANOUT, 0.0)
        case Aggregate(_, keys):
            return first.and_then(max(1.0, first.rows * 0.3) if keys else 1.0, first.rows * GROUP)
        case Window():
            return first.and_then(first.rows, first.rows * SORT)
    return first


def _several(node: Node, inputs: list[Estimate]) -> Estimate:
    first, second = inputs[:2]
    match node:
        case SetOp():
            both = _together(first, second)
            return Estimate(first.rows, both.seconds + both.rows * GROUP)
        case Outer():
            return Estimate(first.rows, _matched(first, second, node.right, conjuncts(node.on)).seconds)
        case Semi():
            met = _matched(first, second, node.right, conjuncts(node.on))
            return Estimate(min(first.rows, met.rows), met.seconds)
        case Join(parts, on):
            met = first
            for part, other in zip(parts[1:], inputs[1:], strict=True):
                met = _matched(met, other, part, on)
            return met
    return Estimate(sum(e.rows for e in inputs), sum(e.seconds for e in inputs))


def _together(one: Estimate, other: Estimate) -> Estimate:
    return Estimate(one.rows + other.rows, one.seconds + other.seconds)


def _matched(left: Estimate, right: Estimate, part: Node, on: tuple[exp.Expr, ...]) -> Estimate:
    """A join: the smaller side is sent to the larger if it is small, else both are shuffled."""
    both, small = _together(left, right), min(left.rows, right.rows)
    moving = both.rows * (SHUFFLE if small > BROADCAST else PROBE)
    if not on:
        return Estimate(left.rows * right.rows, both.seconds + moving)
    lookup = _is_lookup(part, on)
    rows = left.rows if lookup else min(left.rows * FANOUT, max(left.rows, right.rows))
    return Estimate(rows, both.seconds + moving)


def _is_lookup(part: Node, on: tuple[exp.Expr, ...]) -> bool:
    """At most one row of the part meets each row of the other side: its key is among the columns compared."""
    scan = next((n for n in walk(part) if isinstance(n, Scan | Change)), None)
    key = scan.key if isinstance(scan, Scan) else scan.scan.key if scan is not None else ()
    compared = {name for condition in on if isinstance(condition, exp.EQ) for name in columns_in(condition)}
    return bool(key) and set(key) <= compared
