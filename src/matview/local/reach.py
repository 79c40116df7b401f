"""How far the driver goes by itself: how many rows are few, and which expressions few rows lead to."""

from __future__ import annotations

from collections.abc import Callable

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
    Stored,
    TopK,
    UnionAll,
    Values,
    parts,
)
from matview.machine import KIB, memory

MOST_ROWS = min(4_000_000, memory() // (8 * KIB))
"""More rows than these at any place are for Spark."""
MOST_BYTES = memory() // 24
"""So are rows that take more memory: some tenths of it are, with all that is made of them, in use."""
MOST_CHANGED = MOST_ROWS // 4
"""Changes are read here up to so many tuples."""
MOST_PAIRS = 2 * MOST_ROWS
"""More pairs of rows that a join has to look at are for Spark, too."""
SMALL_TABLE = 1_000
"""A table of so few rows is read whole."""

_COMPUTED = (Scan, Change, Stored, Values, Filter, Project, Aggregate, Repeat, TopK, Join, Semi, UnionAll)


def may_be_computed(node: Node) -> bool:
    """Whether all of its operators are among those that are computed here; its expressions may not be."""
    return all(isinstance(part, _COMPUTED) or (isinstance(part, Outer) and part.kind == "left") for part in parts(node))


def is_led(node: Node, sizes: Callable[[str], int]) -> bool:
    """Whether what is at hand leads to all that is read: no table but a small one is read whole."""
    known: dict[Node, bool] = {}

    def led(node: Node) -> bool:
        if node not in known:
            known[node] = _is_led(node, led, sizes)
        return known[node]

    return led(node)


def _is_led(node: Node, led: Callable[[Node], bool], sizes: Callable[[str], int]) -> bool:
    match node:
        case Change() | Values():
            return True
        case Scan(name) | Stored(name):
            return sizes(name) <= SMALL_TABLE
        case Join(parts):
            return any(map(led, parts))
        case Semi(kind, left, right):
            return led(left) or (kind == "semi" and led(right))
        case Outer(_, left, _):
            return led(left)
    return all(map(led, node.inputs))
