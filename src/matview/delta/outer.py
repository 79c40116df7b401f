"""d(E left join F) = d(E join F) + d(E anti join F) beside nulls; a full join has the same for F."""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Join, Node, Outer, Project, Semi
from matview.algebra.scalars import column, conjuncts
from matview.delta.join import join_change
from matview.delta.semi import semi_change
from matview.delta.signed import together


def outer_change(node: Outer, deltas: tuple[Node | None, ...]) -> Node | None:
    left, right = deltas
    matched = join_change(Join(node.inputs, conjuncts(node.on)), deltas)
    lonely = semi_change(Semi("anti", node.left, node.right, node.on), (left, right))
    missed = None
    if node.kind == "full":
        missed = semi_change(Semi("anti", node.right, node.left, node.on), (right, left))
    return together(matched, _beside_nulls(node, lonely), _beside_nulls(node, missed))


def _beside_nulls(node: Outer, delta: Node | None) -> Node | None:
    """The columns of the other side are null."""
    if delta is None:
        return None
    there = set(delta.names)
    outputs = ((f.name, column(f.name) if f.name in there else _null(f.type)) for f in node.fields)
    return Project(delta, (*outputs, (WEIGHT, column(WEIGHT))))


def _null(kind: str) -> exp.Expr:
    return exp.cast(exp.null(), kind, dialect="spark") if kind else exp.null()
