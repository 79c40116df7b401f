"""Rewrites that make a query easier to maintain: one rewrite, one file. Each keeps the bag and its columns.

Names, order and types of the root's fields stay; a field may turn out never to be null.
"""

from __future__ import annotations

from collections.abc import Callable

from matview.algebra.nodes import Node
from matview.algebra.passes.flatten_joins import flatten_joins
from matview.algebra.passes.fold_constants import fold_constants
from matview.algebra.passes.merge_projects import merge_projects
from matview.algebra.passes.prune_columns import prune_columns
from matview.algebra.passes.push_filters import push_filters

Pass = Callable[[Node], Node]

PASSES: tuple[Pass, ...] = (fold_constants, merge_projects, push_filters, flatten_joins, prune_columns)
"""In the order in which they are applied, again and again until nothing changes."""

ROUNDS = 20
"""Far more than any query needs; it only keeps a mistake from running for ever."""


def normalised(node: Node) -> Node:
    """The same relation in the form that maintenance expects."""
    for _ in range(ROUNDS):
        before = node
        for rewrite in PASSES:
            node = rewrite(node)
        if node == before:
            break
    return node
