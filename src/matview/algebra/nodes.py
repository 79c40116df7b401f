"""Relational expressions over bags: all of them under one name, and how they are walked.

Nodes are frozen and refuse to be wrong: `leaves`, `unary` and `joins` have one class each for every operator.

A relation's columns are named once in a whole query (`sales.city`, and `sales_2.city` for a second use of the table),
so no node needs qualifiers: a join's columns are those of its inputs together. Scalar expressions are sqlglot's, with
columns as bare quoted identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from matview.algebra.joins import Join, Outer, Semi, SetOp, UnionAll
from matview.algebra.leaves import OLD_SUFFIX, UPDATES, WEIGHT, Change, Opaque, Scan, Stored, Values, own_column
from matview.algebra.relation import BadNode
from matview.algebra.unary import Aggregate, Filter, Project, Repeat, TopK, Unnest, Window

__all__ = [
    "OLD_SUFFIX",
    "UPDATES",
    "WEIGHT",
    "Aggregate",
    "BadNode",
    "Change",
    "Filter",
    "Join",
    "Leaf",
    "Node",
    "Opaque",
    "Outer",
    "Project",
    "Repeat",
    "Scan",
    "Semi",
    "SetOp",
    "Stored",
    "TopK",
    "Unary",
    "UnionAll",
    "Unnest",
    "Values",
    "Window",
    "own_column",
    "parts",
    "rebuilt",
    "tables",
    "transform",
    "walk",
]

Leaf = Scan | Change | Stored | Values | Opaque
Unary = Filter | Project | Aggregate | Window | TopK | Repeat | Unnest
Node = Leaf | Unary | Join | Outer | Semi | UnionAll | SetOp


def walk(node: Node) -> Iterator[Node]:
    """The node and everything under it, parents first."""
    yield node
    for part in node.inputs:
        yield from walk(part)


def parts(node: Node) -> Iterator[Node]:
    """As `walk`, but what stands in several places comes once: there can be very many ways to it."""
    seen, waiting = {node}, [node]
    while waiting:
        found = waiting.pop()
        yield found
        new = [part for part in dict.fromkeys(found.inputs) if part not in seen]
        seen.update(new)
        waiting += new


def tables(node: Node) -> frozenset[str]:
    """The tables that it reads."""
    scanned = (n.table for n in walk(node) if isinstance(n, Scan))
    return frozenset(scanned).union(*(n.reads for n in walk(node) if isinstance(n, Opaque)))


def rebuilt(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same operator over other inputs."""
    if inputs == node.inputs:
        return node
    match node:
        case Join() | UnionAll():
            return replace(node, parts=inputs)
        case Outer() | Semi() | SetOp():
            return replace(node, left=inputs[0], right=inputs[1])
        case Filter() | Project() | Aggregate() | Window() | TopK() | Repeat() | Unnest():
            return replace(node, input=inputs[0])
        case Scan() | Change() | Stored() | Values() | Opaque():
            return node


def transform(node: Node, function: Callable[[Node], Node]) -> Node:
    """Applies a function to every node, inputs first."""
    return function(rebuilt(node, tuple(transform(part, function) for part in node.inputs)))
