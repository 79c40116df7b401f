"""Operators that work row by row: the change goes through them as the rows do.

d(select p E) = select p dE        d(project A E) = project A dE        d(unnest a E) = unnest a dE
d(repeat n E) = repeat n dE
"""

from __future__ import annotations

from dataclasses import replace

from matview.algebra.nodes import WEIGHT, Filter, Node, Project, Repeat, Unnest
from matview.algebra.scalars import column
from matview.delta.signed import only


def filter_change(node: Filter, delta: Node) -> Node:
    return Filter(delta, node.condition)


def project_change(node: Project, delta: Node) -> Node:
    return Project(delta, (*node.outputs, (WEIGHT, column(WEIGHT))))


def unnest_change(node: Unnest, delta: Node) -> Node:
    return only(replace(node, input=delta), (*node.names, WEIGHT))


def repeat_change(node: Repeat, delta: Node) -> Node:
    return only(replace(node, input=delta), (*node.names, WEIGHT))
