"""Duplicate elimination: a row that stands a times in E stands once in the result if a > 0."""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Aggregate, Node
from matview.algebra.scalars import number
from matview.delta.counted import counted_change
from matview.delta.signed import only, sign


def distinct_change(node: Aggregate, delta: Node) -> Node:
    rows, signed = only(node.input, node.keys), only(delta, (*node.keys, WEIGHT))
    return counted_change(node.keys, (rows,), (signed,), _once)


def _once(times: exp.Expr) -> exp.Expr:
    return sign(exp.GT(this=times.copy(), expression=number(0)))
