"""d(E anti join F): rows of E lose their place when a first match comes, and gain it when the last one goes.

With s'(e) = 1 if e has no match in F', and s(e) the same in F = F' - dF:

    d(E anti join F) = sum over e in E' that dF meets of  s'(e) - s(e)   +   sum over e in dE of  s(e)

and the same for a semi join with "some match". Matches are counted, so conditions may be of any kind.
"""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Aggregate, Filter, Node, Outer, Project, Semi, UnionAll
from matview.algebra.scalars import column, number
from matview.delta.signed import columns, kept, nonzero, sign, total, weighted

OWN, NOW, LATELY = "__own", "__now", "__lately"
"""1 for a row of dE; how many matches a row has in F', and how many of them dF brought."""


def semi_change(node: Semi, deltas: tuple[Node | None, ...]) -> Node | None:
    left, right = deltas
    if right is None:
        return None if left is None else Semi(node.kind, left, node.right, node.on)
    counted = _counted(node, _asking(node, left, right), right)
    was, is_ = _holds(node, _minus(NOW, LATELY)), _holds(node, column(NOW))
    moved = exp.paren(exp.Sub(this=sign(is_), expression=sign(was)))
    place = exp.Case(ifs=[exp.If(this=exp.EQ(this=column(OWN), expression=number(1)), true=sign(was))], default=moved)
    weight = exp.Mul(this=column(WEIGHT), expression=exp.paren(place))
    return Filter(Project(counted, (*kept(node.names), (WEIGHT, weight))), nonzero(WEIGHT))


def _holds(node: Semi, matches: exp.Expr) -> exp.Expr:
    comparison = exp.EQ if node.kind == "anti" else exp.GT
    return comparison(this=matches.copy(), expression=number(0))


def _minus(one: str, other: str) -> exp.Expr:
    return exp.paren(exp.Sub(this=column(one), expression=column(other)))


def _asking(node: Semi, left: Node | None, right: Node) -> Node:
    """The rows whose matches are to be counted: those of E' that dF meets, and those of dE."""
    met = Semi("semi", node.left, Project(right, kept(columns(right))), node.on)
    parts = [Project(weighted(met), (*kept(node.names), (WEIGHT, column(WEIGHT)), (OWN, number(0))))]
    if left is not None:
        parts.append(Project(left, (*kept(node.names), (WEIGHT, column(WEIGHT)), (OWN, number(1)))))
    rows = UnionAll(tuple(parts)) if len(parts) > 1 else parts[0]
    summed = Aggregate(rows, (*node.names, OWN), ((WEIGHT, total(WEIGHT)),))
    return Filter(summed, nonzero(WEIGHT))


def _counted(node: Semi, asking: Node, right: Node) -> Node:
    """Each row with its matches in F', and in dF."""
    names = node.right.names
    now = Semi("semi", node.right, asking, node.on)
    matches = UnionAll(
        (
            Project(now, (*kept(names), (NOW, number(1)), (LATELY, number(0)))),
            Project(right, (*kept(names), (NOW, number(0)), (LATELY, column(WEIGHT)))),
        )
    )
    joined = Outer("left", asking, matches, node.on)
    return Aggregate(joined, (*node.names, OWN, WEIGHT), ((NOW, total(NOW)), (LATELY, total(LATELY))))
