"""Groups whose rows changed are computed anew, and as they were: with K the keys in dE,

    d(aggregate E) = aggregate(E' semi join K) - aggregate((E' - dE) semi join K)

This needs nothing stored. A summary that keeps its own state does better: see matview.plan.summary.
"""

from __future__ import annotations

from dataclasses import replace

from matview.algebra.nodes import Aggregate, Node, UnionAll
from matview.delta.signed import among, difference, keys, negated, rows, weighted


def aggregate_change(node: Aggregate, delta: Node) -> Node:
    now = node.input
    if node.keys:
        now = among(node.input, keys(delta, node.keys), node.keys)
    then = rows(UnionAll((weighted(now), negated(delta))))
    return difference(replace(node, input=now), replace(node, input=then))
