"""Scalar subqueries: one value for each row around; where there is no row, null."""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.conditions import Fields, alike, fields_of
from matview.algebra.nodes import Join, Outer
from matview.algebra.scalars import column, columns_in, conjunction, type_of
from matview.errors import UnknownColumn
from matview.sql.lower.context import Context, shown
from matview.sql.lower.correlation import correlation, tied
from matview.sql.lower.functions import bare, has_aggregate, has_subquery, has_window
from matview.sql.lower.grouping import aggregated, over_missing_groups, wider
from matview.sql.lower.groups import Keys
from matview.sql.lower.items import select_items
from matview.sql.lower.marks import Valued
from matview.sql.lower.pulled import Pulled, as_rows, as_select, pulled
from matview.sql.lower.scope import Scope
from matview.sql.lower.single import is_one_row, is_single, is_single_where


def scalar_value(ctx: Context, scope: Scope, query: exp.Expr) -> Valued:
    used = correlation(ctx, scope, query)
    if not used:
        return _alone(ctx, scope, query)
    saved = ctx.names.saved()
    try:
        if found := _by_equality(ctx, scope, query) or _by_key(ctx, scope, query):
            return found
    except UnknownColumn:  # it speaks of the query around in more than its conditions
        pass
    ctx.names.restore(saved)
    return _for_each(ctx, scope, query, used)


def _alone(ctx: Context, scope: Scope, query: exp.Expr) -> Valued:
    """A subquery that is the same for every row."""
    lowered = ctx.lower_query(ctx, query, None, "subquery")
    value = _only(ctx, query, [name for _, name in lowered.columns])
    if is_one_row(lowered.node):
        return scope.with_node(Join((scope.node, lowered.node))), column(value)
    if not is_single(lowered.node):
        raise _several(ctx, query)
    return scope.with_node(Outer("left", scope.node, lowered.node, exp.true())), column(value)


def _for_each(ctx: Context, scope: Scope, query: exp.Expr, used: tuple[str, ...]) -> Valued:
    """The general way: evaluated for all distinct values of what it speaks of, then joined back."""
    lowered = ctx.lower_query(ctx, query, scope.asking(used), "subquery")
    value = _only(ctx, query, [name for _, name in lowered.columns])
    if not is_single(lowered.node, frozenset(lowered.carried)):
        raise _several(ctx, query)
    node = Outer("left", scope.node, lowered.node, conjunction(*tied(used, lowered)))
    return scope.with_node(node), column(value)


def _only(ctx: Context, query: exp.Expr, columns: list[str]) -> str:
    if len(columns) != 1:
        raise ctx.bad(f"a scalar subquery has {len(columns)} columns", query, "select one")
    return columns[0]


def _several(ctx: Context, query: exp.Expr) -> Exception:
    what = f"the scalar subquery `{shown(query)}` may give several rows"
    return ctx.refused(what, query, "aggregate it without GROUP BY, add LIMIT 1, or look up by a table's key")


# the simple ways ------------------------------------------------------------------------------------------------------


def _by_equality(ctx: Context, scope: Scope, query: exp.Expr) -> Valued | None:
    """An aggregate correlated by equality: grouped by the inner sides, looked up by the outer ones."""
    select = as_select(query)
    if select is None or select.args.get("limit") or not _is_one_aggregate(select):
        return None
    found = pulled(ctx, scope, select)
    given = fields_of(found.rows.node, scope.node)
    sides = [_sides(found, given, condition) for condition in found.conditions]
    keys = tuple(dict.fromkeys(side[1] for side in sides if side is not None))
    if not sides or None in sides:
        return None
    _, items = select_items(found.ctx, found.rows, select.expressions)
    grouped = aggregated(ctx, found.rows, Keys(keys), [items[0].value, *keys])
    if None in grouped.over_nothing.values():
        return None
    value, *columns = grouped.parts
    by = dict(zip(keys, columns, strict=True))
    on = conjunction(*(kind(this=outer, expression=by[inner].copy()) for kind, inner, outer in filter(None, sides)))
    node = Outer("left", scope.node, grouped.scope.node, on)
    return scope.with_node(node), over_missing_groups(grouped, value)


def _is_one_aggregate(select: exp.Select) -> bool:
    items = select.expressions
    return len(items) == 1 and has_aggregate(items[0]) and not has_window(items[0]) and not has_subquery(items[0])


def _sides(found: Pulled, given: Fields, condition: exp.Expr) -> tuple[type[exp.Binary], exp.Expr, exp.Expr] | None:
    """An equality as its kind, its inner and its outer side; of types in which several groups may equal one, None."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return None
    inner = set(found.rows.node.names)
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        if columns_in(one) <= inner and columns_in(one) and not columns_in(other) & inner:
            same_type = alike(type_of(one, given), type_of(other, given))
            return (type(condition), bare(one), other.copy()) if same_type else None
    return None


def _by_key(ctx: Context, scope: Scope, query: exp.Expr) -> Valued | None:
    """A lookup in a relation that has at most one row for each row around."""
    select = as_rows(query)
    if select is None or select.args.get("limit"):
        return None
    found = pulled(ctx, scope, select)
    if not is_single_where(found.rows.node, scope.node, found.conditions):
        return None
    _, items = select_items(found.ctx, found.rows, select.expressions)
    value = ctx.names.fresh("value")
    _only(ctx, query, [item.name for item in items])
    inner = wider(found.rows.node, [(value, items[0].value)])
    return scope.with_node(Outer("left", scope.node, inner, conjunction(*found.conditions))), column(value)
