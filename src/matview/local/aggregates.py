"""Aggregates of few rows, by group: those whose value does not depend on an order, and rounds nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from matview.local.kinds import BIGINT, EXACT, Kind, NotLocal, Value, summed
from matview.local.scalars import Row, Scalar, Scope, scalar

Folded = Callable[[Sequence[Row]], Value]


@dataclass(frozen=True, slots=True)
class Aggregated:
    """What an expression over aggregates is of the rows of a group."""

    kind: Kind
    of: Folded


def aggregated(expression: exp.Expr, scope: Scope) -> Aggregated:
    """Each aggregate in it becomes a value beside the others; the rest is a scalar expression over these."""
    found: list[Aggregated] = []

    def swap(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.AggFunc):
            return node
        found.append(_aggregate(node, scope))
        return exp.column(f"a{len(found) - 1}")

    if isinstance(expression, exp.AggFunc):
        return _aggregate(expression, scope)
    outer = expression.copy().transform(swap)
    made = scalar(outer, Scope.of([f"a{i}" for i in range(len(found))], [one.kind for one in found]))
    return Aggregated(made.kind, lambda rows: made.of([one.of(rows) for one in found]))


def _aggregate(call: exp.AggFunc, scope: Scope) -> Aggregated:
    match call:
        case exp.Count() if isinstance(call.this, exp.Star) and not call.expressions:
            return Aggregated(BIGINT, len)
        case exp.Count() if not isinstance(call.this, exp.Distinct) and not call.expressions:
            of = scalar(call.this, scope).of
            return Aggregated(BIGINT, lambda rows: sum(of(row) is not None for row in rows))
        case exp.Sum() if not isinstance(call.this, exp.Distinct):
            return _sum(scalar(call.this, scope))
        case exp.Min() | exp.Max() if not call.expressions:
            return _extreme(scalar(call.this, scope), min if isinstance(call, exp.Min) else max)
    raise NotLocal(f"{type(call).__name__} is for Spark to compute")


def _sum(given: Scalar) -> Aggregated:
    kind, of = summed(given.kind), given.of

    def total(rows: Sequence[Row]) -> Value:
        there = [value for row in rows if (value := of(row)) is not None]
        if not there:
            return None
        if kind.is_whole:
            return kind.checked(sum(there))  # type: ignore[arg-type]
        made = Decimal(0)
        for value in there:
            made = EXACT.add(made, value)  # type: ignore[arg-type]
        return kind.checked(made)

    return Aggregated(kind, total)


def _extreme(given: Scalar, best: Callable[[Any], Value]) -> Aggregated:
    of = given.of
    if not given.kind.is_ordered:
        raise NotLocal("an order of floating numbers")

    def found(rows: Sequence[Row]) -> Value:
        there = [value for row in rows if (value := of(row)) is not None]
        return best(there) if there else None

    return Aggregated(given.kind, found)
