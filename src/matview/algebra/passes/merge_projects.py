"""project A (project B E) = project A[B] E        project (all of E) E = E

A[B] has the expressions of B in place of the columns that A reads. What costs something is not written down twice.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from matview.algebra.nodes import Node, Project, transform
from matview.algebra.scalars import columns_in, substituted

Outputs = tuple[tuple[str, exp.Expr], ...]


def merge_projects(node: Node) -> Node:
    return transform(node, _merged)


def _merged(node: Node) -> Node:
    match node:
        case Project(Project(input, inner), outputs) if _costs_nothing(inner, outputs):
            values = dict(inner)
            return _merged(Project(input, tuple((name, substituted(e, values)) for name, e in outputs)))
        case Project(input, outputs) if _changes_nothing(input, outputs):
            return input
    return node


def _costs_nothing(inner: Outputs, outputs: Outputs) -> bool:
    """Whether every expression of the inner one is a column, a constant, or used once at most."""
    uses = Counter(c.name for _, e in outputs for c in e.find_all(exp.Column))
    return all(uses[name] <= 1 or isinstance(e, exp.Column) or not columns_in(e) for name, e in inner)


def _changes_nothing(input: Node, outputs: Outputs) -> bool:
    kept = all(isinstance(e, exp.Column) and e.name == name for name, e in outputs)
    return kept and tuple(name for name, _ in outputs) == input.names
