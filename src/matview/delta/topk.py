"""d(top k of E) = top k of E' - top k of (E' - dE)."""

from __future__ import annotations

from dataclasses import replace

from matview.algebra.nodes import Node, TopK
from matview.delta.signed import before, difference, rows


def topk_change(node: TopK, delta: Node) -> Node:
    return difference(node, replace(node, input=rows(before(node.input, delta))))
