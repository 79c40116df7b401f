"""Partitions whose rows changed are computed anew, and as they were: with K the partition keys in dE,

d(window E) = window(E' semi join K) - window((E' - dE) semi join K)
"""

from __future__ import annotations

from dataclasses import replace

from matview.algebra.nodes import Node, UnionAll, Window
from matview.delta.signed import among, difference, keys, negated, rows, weighted


def window_change(node: Window, delta: Node) -> Node:
    now = node.input
    if node.partition:
        now = among(node.input, keys(delta, node.partition), node.partition)
    then = rows(UnionAll((weighted(now), negated(delta))))
    return difference(replace(node, input=now), replace(node, input=then))
