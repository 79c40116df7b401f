"""Which columns of the queries around a subquery speaks of, and how its rows are tied to theirs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from matview.algebra.nodes import Values
from matview.algebra.scalars import column, same
from matview.sql.lower.context import Context, Lowered
from matview.sql.lower.scope import Given, Scope


def correlation(ctx: Context, scope: Scope, query: exp.Expr) -> tuple[str, ...]:
    """The columns of `scope` that the query names: it is lowered once for each row of nothing, to see."""
    seen = scope.seen()
    if not seen:
        return ()
    fields = tuple(scope.node.field(name) for name in seen)
    given = Given(Values(fields, ()), seen, scope.layers)
    saved = ctx.names.saved()
    ctx.lower_query(ctx, query, given, "subquery")
    ctx.names.restore(saved)
    return tuple(name for name in seen if name in given.used)


def tied(used: Sequence[str], lowered: Lowered) -> tuple[exp.Expr, ...]:
    """A subquery's rows belong to the rows that they were evaluated for."""
    return tuple(same(column(a), column(b)) for a, b in zip(used, lowered.carried, strict=True))
