"""WHERE, HAVING and QUALIFY: plain conditions filter, EXISTS and IN are semi joins, other subqueries become values."""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import Filter
from matview.algebra.scalars import conjunction, conjuncts
from matview.sql.lower.attach import attached
from matview.sql.lower.context import Context
from matview.sql.lower.functions import bare, has_subquery
from matview.sql.lower.quantified import is_test, matching
from matview.sql.lower.scope import Scope


def filtered(ctx: Context, scope: Scope, condition: exp.Expr) -> Scope:
    """The rows for which the condition, over the scope's columns, holds."""
    parts = [p for c in conjuncts(condition) for p in conjuncts(pushed_in(c))]
    plain = [p for p in parts if not has_subquery(p)]
    if plain:
        scope = scope.with_node(Filter(scope.node, conjunction(*plain)))
    for part in parts:
        if has_subquery(part):
            scope = _asked(ctx, scope, part)
    return scope


def _asked(ctx: Context, scope: Scope, part: exp.Expr) -> Scope:
    negated = isinstance(part, exp.Not)
    test = bare(part.this) if negated else bare(part)
    if not is_test(test):
        scope, value = attached(ctx, scope, part)
        return scope.with_node(Filter(scope.node, value))
    if isinstance(test, exp.In):
        scope, asked = attached(ctx, scope, test.this)
        test = exp.In(this=asked, query=test.args["query"].copy())
    return matching(ctx, scope, test, "anti" if negated else "semi")


def pushed_in(condition: exp.Expr) -> exp.Expr:
    """NOT taken inwards: NOT NOT p is p, NOT (p OR q) is NOT p AND NOT q; true, false and unknown alike."""
    inner = bare(condition)
    if not isinstance(inner, exp.Not):
        return inner
    denied = bare(inner.this)
    match denied:
        case exp.Not():
            return pushed_in(denied.this)
        case exp.Or():
            sides = (pushed_in(exp.Not(this=exp.paren(bare(side).copy()))) for side in (denied.left, denied.right))
            return exp.and_(*sides, copy=False)
    return inner
