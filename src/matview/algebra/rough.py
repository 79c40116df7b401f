"""Which columns may differ in their last digits from one computation to the next: what was added up in floating point
depends on the order of adding."""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import Aggregate, Node, Opaque, Project, SetOp, UnionAll, Window
from matview.algebra.scalars import columns_in

_EXACT = (exp.AnyValue, exp.Count, exp.CountIf, exp.LogicalAnd, exp.LogicalOr, exp.Max, exp.Min)
"""Aggregates that give one of their values, or count them."""


def may_be_rough(node: Node, name: str) -> bool:
    """Something was added up on the way to a column, in whatever type; where nothing is known, it may have been."""
    match node:
        case Opaque():
            return True
        case Project(input, outputs):
            return _over(dict(outputs)[name], input)
        case Aggregate(input, _, made) | Window(input, _, made):
            if name in dict(made):
                return _adds(dict(made)[name]) or _over(dict(made)[name], input)
        case UnionAll() | SetOp():
            place = node.names.index(name)
            return any(may_be_rough(part, part.names[place]) for part in node.inputs)
    return any(may_be_rough(part, name) for part in node.inputs if name in part.names)


def _adds(expression: exp.Expr) -> bool:
    aggregates = list(expression.find_all(exp.AggFunc))
    return not aggregates or not all(isinstance(one, _EXACT) for one in aggregates)


def _over(expression: exp.Expr, input: Node) -> bool:
    return any(may_be_rough(input, name) for name in columns_in(expression))
