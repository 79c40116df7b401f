"""From a query to its change, bottom up; where nothing changed there is no expression at all."""

from __future__ import annotations

from collections.abc import Collection

from matview.algebra.nodes import (
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Outer,
    Project,
    Repeat,
    Scan,
    Semi,
    SetOp,
    TopK,
    UnionAll,
    Unnest,
    Window,
)
from matview.delta.aggregate import aggregate_change
from matview.delta.distinct import distinct_change
from matview.delta.join import join_change
from matview.delta.linear import filter_change, project_change, repeat_change, unnest_change
from matview.delta.outer import outer_change
from matview.delta.semi import semi_change
from matview.delta.setop import setop_change
from matview.delta.topk import topk_change
from matview.delta.union import union_change
from matview.delta.window import window_change

Deltas = tuple[Node | None, ...]
"""The changes of a node's inputs; None where nothing changed."""


def change(node: Node, changed: Collection[str]) -> Node | None:
    """How the node changes when the tables in `changed` do: its columns and `__weight`. None: not at all."""
    if isinstance(node, Scan):
        return Change(node) if node.table in changed else None
    deltas = tuple(change(part, changed) for part in node.inputs)
    if all(delta is None for delta in deltas):
        return None
    return _rule(node, deltas)


def _rule(node: Node, deltas: Deltas) -> Node | None:
    match node:
        case Join():
            return join_change(node, deltas)
        case Outer():
            return outer_change(node, deltas)
        case Semi():
            return semi_change(node, deltas)
        case UnionAll():
            return union_change(node, deltas)
        case SetOp():
            return setop_change(node, deltas)
    (delta,) = deltas
    assert delta is not None
    return _unary_rule(node, delta)


def _unary_rule(node: Node, delta: Node) -> Node | None:
    match node:
        case Filter():
            return filter_change(node, delta)
        case Project():
            return project_change(node, delta)
        case Unnest():
            return unnest_change(node, delta)
        case Repeat():
            return repeat_change(node, delta)
        case Aggregate(aggregates=()):
            return distinct_change(node, delta)
        case Aggregate():
            return aggregate_change(node, delta)
        case Window():
            return window_change(node, delta)
        case TopK():
            return topk_change(node, delta)
    raise AssertionError(f"{type(node).__name__} is no part of a view")
