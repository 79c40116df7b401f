"""d(E + F) = dE + dF, for UNION ALL."""

from __future__ import annotations

from matview.algebra.nodes import WEIGHT, Node, Project, UnionAll
from matview.algebra.scalars import column
from matview.delta.signed import columns, together


def union_change(node: UnionAll, deltas: tuple[Node | None, ...]) -> Node | None:
    return together(*(_named(delta, node.names) for delta in deltas if delta is not None))


def _named(delta: Node, names: tuple[str, ...]) -> Node:
    """Columns are matched by position and called as in the union."""
    pairs = zip(names, columns(delta), strict=True)
    return Project(delta, (*((new, column(old)) for new, old in pairs), (WEIGHT, column(WEIGHT))))
