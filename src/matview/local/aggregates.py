"""Aggregates of few rows, by group: those whose value does not depend on an order, and rounds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from matview.algebra.schema import RESERVED_PREFIX
from matview.local.batch import Batch, Function, one_array, whole
from matview.local.kinds import BIGINT, Kind, NotLocal, arrow_of, summed
from matview.local.matching import alike
from matview.local.scalars import Scalar, Scope, converted, scalar

_NULL_IF_NONE = pc.ScalarAggregateOptions(skip_nulls=True, min_count=1)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate: what it is of, and how Arrow calls it; all rows count if it is of nothing."""

    kind: Kind
    name: str
    of: Function | None = None


@dataclass(frozen=True)
class Folded:
    """An expression over aggregates, as one over their values."""

    found: Sequence[Aggregated]
    outer: Scalar

    @classmethod
    def of(cls, expression: exp.Expr, scope: Scope) -> Folded:
        found: list[Aggregated] = []

        def swap(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.AggFunc):
                return node
            found.append(_aggregate(node, scope))
            return exp.column(_name(len(found) - 1))

        outer = swap(expression) if isinstance(expression, exp.AggFunc) else expression.copy().transform(swap)
        names = [_name(place) for place in range(len(found))]
        return cls(found, scalar(outer, Scope.of(names, [one.kind for one in found])))


def _name(place: int) -> str:
    """That of an aggregate's value, which no column has."""
    return f"{RESERVED_PREFIX}aggregate_{place}"


def grouped(batch: Batch, keys: Sequence[pa.Array], folded: Sequence[Folded]) -> list[pa.Array]:
    """The keys of each group, then what the expressions are of it; without keys all rows are one group."""
    aggregates = [one for each in folded for one in each.found]
    columns = {f"k{i}": alike(key) for i, key in enumerate(keys)}
    columns |= {f"v{i}": _values(one, batch) for i, one in enumerate(aggregates)}
    told = [(f"v{i}", one.name, _NULL_IF_NONE if one.name != "count" else None) for i, one in enumerate(aggregates)]
    try:
        table = pa.table(columns) if columns else pa.table({"k": pa.nulls(batch.size)})
        made = table.group_by([f"k{i}" for i in range(len(keys))], use_threads=False).aggregate(told)
    except pa.ArrowException as error:
        raise NotLocal(str(error)) from None
    values = [converted(one_array(made[f"v{i}_{one.name}"]), arrow_of(one.kind)) for i, one in enumerate(aggregates)]
    found, waiting = [one_array(made[f"k{i}"]) for i in range(len(keys))], iter(values)
    for each in folded:
        own = [next(waiting) for _ in each.found]
        found.append(each.outer.rows(Batch.of(own, made.num_rows)))
    return found


def _values(one: Aggregated, batch: Batch) -> pa.Array:
    """What is aggregated; sums in a type that has room for them."""
    if one.of is None:
        return pa.repeat(True, batch.size)
    values = whole(one.of(batch), batch.size)
    if one.name != "sum":
        return values
    if one.kind.is_whole:
        return _bounded(values)
    digits = values.type.precision + len(str(batch.size))
    return converted(values, pa.decimal128(38, one.kind.scale) if digits <= 38 else pa.decimal256(76, one.kind.scale))


def _bounded(values: pa.Array) -> pa.Array:
    """Whole numbers whose sum is a BIGINT: Arrow does not say if it is not."""
    bounds = pc.min_max(values).as_py()
    greatest = max(abs(bounds["min"] or 0), abs(bounds["max"] or 0))
    if greatest * len(values) >= 1 << 63:
        raise NotLocal("a sum that may overflow")
    return values


def _aggregate(call: exp.AggFunc, scope: Scope) -> Aggregated:
    match call:
        case exp.Count() if isinstance(call.this, exp.Star) and not call.expressions:
            return Aggregated(BIGINT, "count")
        case exp.Count() if not isinstance(call.this, exp.Distinct) and not call.expressions:
            return Aggregated(BIGINT, "count", scalar(call.this, scope).of)
        case exp.Sum() if not isinstance(call.this, exp.Distinct):
            given = scalar(call.this, scope)
            return Aggregated(summed(given.kind), "sum", given.of)
        case exp.Min() | exp.Max() if not call.expressions:
            return _extreme(scalar(call.this, scope), "min" if isinstance(call, exp.Min) else "max")
    raise NotLocal(f"{type(call).__name__} is for Spark to compute")


def _extreme(given: Scalar, name: str) -> Aggregated:
    if not given.kind.is_ordered:
        raise NotLocal("an order of floating numbers")
    return Aggregated(given.kind, name, given.of)
