"""Subqueries in expressions become columns: the relation is joined with their values, row for row."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import has_subquery
from matview.sql.lower.marks import Valued, exists_value, in_value
from matview.sql.lower.quantified import is_test
from matview.sql.lower.scalar import scalar_value
from matview.sql.lower.scope import Scope


def attached(ctx: Context, scope: Scope, expression: exp.Expr) -> Valued:
    """The relation with the values of the expression's subqueries beside it, and the expression over those."""
    root = exp.Paren(this=expression.copy())
    for target in list(_targets(root)):
        scope, value = _valued(ctx, scope, target)
        target.replace(value)
    return scope, root.this


def _targets(expression: exp.Expr) -> Iterator[exp.Expr]:
    """Subqueries with their EXISTS or IN, outermost only."""
    for node in expression.walk(prune=_is_target):
        if _is_target(node):
            yield node


def _is_target(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query) or is_test(node)


def _valued(ctx: Context, scope: Scope, target: exp.Expr) -> Valued:
    match target:
        case exp.Exists():
            return exists_value(ctx, scope, target)
        case exp.In() if has_subquery(target.this):
            scope, asked = attached(ctx, scope, target.this)
            return in_value(ctx, scope, exp.In(this=asked, query=target.args["query"].copy()))
        case exp.In():
            return in_value(ctx, scope, target)
        case exp.Query() if not isinstance(target.parent, exp.Any | exp.All):
            return scalar_value(ctx, scope, target)
    raise ctx.refused(f"`{shown(target.parent or target)}` has no rule", target, "write it with EXISTS or IN")
