"""Every input of a union has the union's own types: a change of one input then looks as it would among the others.

    E union F = (cast E) union (cast F)

Spark casts the rows of a set operation to types that all inputs have in common. A rule that takes one input alone, or
that asks a condition of it, would miss that cast; so it is written down before any rule is applied.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from matview.algebra.nodes import Node, Project, SetOp, UnionAll, rebuilt, transform
from matview.algebra.scalars import DIALECT, column
from matview.algebra.schema import Field
from matview.errors import NotIncremental
from matview.plan.summary import Typing


def united(node: Node, typing: Typing) -> Node:
    """The same relation, with the casts of its set operations written down."""
    return transform(node, lambda part: _cast(part, typing) if isinstance(part, UnionAll | SetOp) else part)


def _cast(node: UnionAll | SetOp, typing: Typing) -> Node:
    wanted = tuple(f.type for f in typing(node))
    return rebuilt(node, tuple(_as(part, typing(part), wanted) for part in node.inputs))


def _as(part: Node, given: tuple[Field, ...], wanted: tuple[str, ...]) -> Node:
    if tuple(f.type for f in given) == wanted:
        return part
    pairs = zip(given, wanted, strict=True)
    return Project(part, tuple((f.name, column(f.name) if f.type == kind else _of(f, kind)) for f, kind in pairs))


def _of(field: Field, kind: str) -> exp.Expr:
    try:
        return exp.cast(column(field.name), kind, dialect=DIALECT)
    except SqlglotError:
        raise NotIncremental(
            f"a set operation makes {field.type} into {kind}", help="cast the columns of both queries to one type"
        ) from None
