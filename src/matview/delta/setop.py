"""EXCEPT and INTERSECT: a row that stands a times in E and b times in F stands in

E except all F  max(a - b, 0) times      E except F     once if a > 0 and b = 0
E intersect all F   min(a, b) times      E intersect F  once if a > 0 and b > 0
"""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import Node, SetOp
from matview.algebra.scalars import call, number
from matview.delta.counted import Multiplicity, counted_change
from matview.delta.signed import sign


def setop_change(node: SetOp, deltas: tuple[Node | None, ...]) -> Node:
    return counted_change(node.names, node.inputs, deltas, TIMES[node.kind])


def _some(times: exp.Expr) -> exp.Expr:
    return exp.GT(this=times.copy(), expression=number(0))


def _none(times: exp.Expr) -> exp.Expr:
    return exp.EQ(this=times.copy(), expression=number(0))


TIMES: dict[str, Multiplicity] = {
    "except all": lambda a, b: call("greatest", exp.Sub(this=a.copy(), expression=b.copy()), number(0)),
    "except": lambda a, b: sign(exp.and_(_some(a), _none(b))),
    "intersect all": lambda a, b: call("least", a, b),
    "intersect": lambda a, b: sign(exp.and_(_some(a), _some(b))),
}
