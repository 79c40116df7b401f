"""A join of joins as one."""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import Join, Node


def flat(node: Join) -> tuple[list[Node], tuple[exp.Expr, ...]]:
    """The relations of a join, and of the joins inside it, and all their conditions."""
    parts, on = list[Node](), list(node.on)
    for part in node.parts:
        inner, conditions = flat(part) if isinstance(part, Join) else ([part], ())
        parts += inner
        on += conditions
    return parts, tuple(on)
