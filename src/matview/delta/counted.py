"""Operators that look at how often a row stands in each input: f(a, b) times in the result.

d = f(a', b') - f(a' - da, b' - db), for the rows that dE or dF has
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Aggregate, Filter, Node, Project, UnionAll
from matview.algebra.scalars import column, number
from matview.delta.signed import among, columns, kept, keys, nonzero, total

Multiplicity = Callable[..., exp.Expr]
"""From how often a row stands in each input to how often it stands in the result."""


def counted_change(
    names: tuple[str, ...], inputs: Sequence[Node], deltas: Sequence[Node | None], times: Multiplicity
) -> Node:
    """The change of an operator over `inputs`, whose columns are matched by position and called `names`."""
    changed = [_named(delta, columns(delta), names) for delta in deltas if delta is not None]
    found = keys(UnionAll(tuple(changed)) if len(changed) > 1 else changed[0], names)
    parts: list[Node] = []
    for i, (node, delta) in enumerate(zip(inputs, deltas, strict=True)):
        now = among(_named(node, node.names, names), found, names)
        parts.append(_marked(now, names, len(inputs), f"__now.{i}", number(1)))
        if delta is not None:
            there = _named(delta, columns(delta), names, weight=True)
            parts.append(_marked(there, names, len(inputs), f"__lately.{i}", column(WEIGHT)))
    marks = _marks(len(inputs))
    summed = Aggregate(UnionAll(tuple(parts)), names, tuple((mark, total(mark)) for mark in marks))
    now_counts = [column(f"__now.{i}") for i in range(len(inputs))]
    old_counts = [
        exp.paren(exp.Sub(this=column(f"__now.{i}"), expression=column(f"__lately.{i}"))) for i in range(len(inputs))
    ]
    weight = exp.Sub(this=exp.paren(times(*now_counts)), expression=exp.paren(times(*old_counts)))
    return Filter(Project(summed, (*kept(names), (WEIGHT, weight))), nonzero(WEIGHT))


def _marks(inputs: int) -> list[str]:
    return [f"__{when}.{i}" for when in ("now", "lately") for i in range(inputs)]


def _marked(node: Node, names: tuple[str, ...], inputs: int, mark: str, value: exp.Expr) -> Node:
    outputs = ((m, value if m == mark else number(0)) for m in _marks(inputs))
    return Project(node, (*kept(names), *outputs))


def _named(node: Node, old: Sequence[str], new: Sequence[str], *, weight: bool = False) -> Node:
    outputs = [(name, column(was)) for was, name in zip(old, new, strict=True)]
    return Project(node, (*outputs, (WEIGHT, column(WEIGHT))) if weight else tuple(outputs))
