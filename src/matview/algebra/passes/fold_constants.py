"""select TRUE E = E        select FALSE E = nothing"""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import Filter, Node, Values, transform
from matview.algebra.scalars import conjuncts


def fold_constants(node: Node) -> Node:
    return transform(node, _folded)


def _folded(node: Node) -> Node:
    if not isinstance(node, Filter):
        return node
    conditions = conjuncts(node.condition)
    if any(map(_is_false, conditions)) and _can_be_empty(node):
        return Values(node.fields, ())
    return node if conditions else node.input


def _is_false(condition: exp.Expr) -> bool:
    return isinstance(condition, exp.Null) or (isinstance(condition, exp.Boolean) and not condition.this)


def _can_be_empty(node: Node) -> bool:
    """An empty relation has the types that its fields name, so all of them must be known."""
    return bool(node.fields) and all(f.type for f in node.fields)
