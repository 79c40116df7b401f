"""What may not stand in a condition on rows."""

from __future__ import annotations

from sqlglot import exp

from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import has_window, is_aggregate, own_nodes
from matview.sql.lower.resolve import Find, resolve


def condition_of(ctx: Context, condition: exp.Expr, find: Find) -> exp.Expr:
    """A condition of WHERE, over the relation's columns."""
    if call := next((n for n in own_nodes(condition) if is_aggregate(n)), None):
        raise ctx.bad(f"WHERE cannot have an aggregate: `{shown(call)}`", call, "use HAVING")
    if has_window(condition):
        spot = next(n for n in own_nodes(condition) if isinstance(n, exp.Window))
        raise ctx.bad(f"WHERE cannot have a window function: `{shown(spot)}`", spot, "use QUALIFY, or a query in FROM")
    return resolve(ctx, condition, find)
