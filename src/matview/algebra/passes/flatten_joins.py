"""(E join F) join G = E join F join G        E join unit = E

A join under a projection that only renames and drops columns is taken in as well; the projection then stands above.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from matview.algebra.conditions import filtered
from matview.algebra.nodes import Join, Node, Project, Values, transform
from matview.algebra.scalars import column, renamed

UNIT = Values((), ((),))


@dataclass(frozen=True)
class _Part:
    """What a part of a join is made of: relations, conditions, and what its columns are called in the relations."""

    relations: tuple[Node, ...]
    on: tuple[exp.Expr, ...] = ()
    renames: dict[str, str] = field(default_factory=dict)


def flatten_joins(node: Node) -> Node:
    return transform(node, _flat)


def _flat(node: Node) -> Node:
    if not isinstance(node, Join):
        return node
    parts = [_taken_in(part) for part in node.parts]
    if not _distinct(name for part in parts for relation in part.relations for name in relation.names):
        parts = [_opened(part) for part in node.parts]
    return _joined(node, parts)


def _opened(part: Node) -> _Part:
    match part:
        case Join(parts, on):
            return _Part(parts, on)
        case Values() if part == UNIT:
            return _Part(())
    return _Part((part,))


def _taken_in(part: Node) -> _Part:
    """The same, through a projection that only renames and drops."""
    match part:
        case Project(Join(parts, on), outputs) if all(isinstance(e, exp.Column) for _, e in outputs):
            return _Part(parts, on, {name: e.name for name, e in outputs})
    return _opened(part)


def _distinct(names: Iterable[str]) -> bool:
    folded = [name.casefold() for name in names]
    return len(set(folded)) == len(folded)


def _joined(node: Join, parts: list[_Part]) -> Node:
    renames = {new: old for part in parts for new, old in part.renames.items()}
    on = (*(c for part in parts for c in part.on), *(renamed(c, renames) for c in node.on))
    joined = _of(tuple(relation for part in parts for relation in part.relations), on)
    if not renames:
        return joined
    return Project(joined, tuple((name, column(renames.get(name, name))) for name in node.names))


def _of(relations: tuple[Node, ...], on: tuple[exp.Expr, ...]) -> Node:
    """Their join, however few they are."""
    if len(relations) > 1:
        return Join(relations, on)
    return filtered(relations[0] if relations else UNIT, on)
