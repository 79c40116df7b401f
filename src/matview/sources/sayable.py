"""Whether a source can be asked for an operator: as far as all engines answer it just as Spark would."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache

from sqlglot import exp

from matview.algebra.nodes import Aggregate, Change, Filter, Join, Node, Outer, Project, Scan, Stored, UnionAll, rebuilt
from matview.errors import MatviewError
from matview.sources.subset import asked_anew, bare
from matview.sql.render import query


@lru_cache(maxsize=8192)
def sayable(node: Node) -> bool:
    """Over inputs that can be said; remembered, since every round asks the same again."""
    match node:
        case Scan() | Change():
            return all(field.type for field in node.fields)
        case Filter() | Project() | Join() | UnionAll() | Outer("left") | Aggregate(aggregates=()):
            return _answers_alike(node)
    return False


def _answers_alike(node: Node) -> bool:
    inputs = [Stored(f"input_{number}", part.fields) for number, part in enumerate(node.inputs)]
    if not all(field.type for part in (node, *inputs) for field in part.fields):
        return False
    tables = {one.view: {field.name: field.type for field in one.fields} for one in inputs}
    made = rebuilt(node, tuple(inputs))
    made = replace(made, sent=None) if isinstance(made, Join | Outer) else made  # that is for Spark alone
    try:
        asked_anew(query(made), tables, _moment, bare)
    except MatviewError:
        return False
    return True


def _moment(value: date | datetime) -> exp.Expr:
    return exp.Literal.string(value.isoformat())
