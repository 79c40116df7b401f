"""Joins of unions as unions of joins, for sites: (E + F) join G  =  E join G  +  F join G.

A table as it was is the table together with what is to be taken away again. Databases look up rows of a table by its
indexes, but few of them those of a union.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from matview.algebra.nodes import Filter, Join, Node, Project, UnionAll, rebuilt
from matview.algebra.scalars import column
from matview.plan.sites.flat import flat

MOST = 16
"""A join does not become more joins than that: it stays as it is."""


def distributed(node: Node) -> Node:
    """The same rows."""
    node = rebuilt(node, tuple(map(distributed, node.inputs)))
    if not isinstance(node, Join):
        return node
    parts, on = flat(node)
    ways = [_alternatives(part) for part in parts]
    if not 1 < prod(map(len, ways)) <= MOST:
        return node
    return UnionAll(tuple(Join(chosen, on) for chosen in product(*ways)))


def _alternatives(node: Node) -> list[Node]:
    """Relations of the same columns that are the node together."""
    match node:
        case UnionAll(parts):
            return [_named(one, node.names) for part in parts for one in _alternatives(part)]
        case Project(input) | Filter(input):
            return [replace(node, input=one) for one in _alternatives(input)]
    return [node]


def _named(node: Node, names: tuple[str, ...]) -> Node:
    if node.names == names:
        return node
    return Project(node, tuple((name, column(was)) for name, was in zip(names, node.names, strict=True)))
