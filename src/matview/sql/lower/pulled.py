"""A plain SELECT inside another query, its conditions that speak of that query set apart."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.nodes import Filter, Node
from matview.algebra.scalars import columns_in, conjunction, conjuncts
from matview.sql.lower.checks import condition_of
from matview.sql.lower.context import Context
from matview.sql.lower.functions import has_aggregate, has_subquery, has_window, own_nodes
from matview.sql.lower.items import select_items
from matview.sql.lower.joins import from_clause
from matview.sql.lower.resolve import in_scope
from matview.sql.lower.scope import Scope
from matview.sql.lower.sources import with_ctes
from matview.sql.lower.unnest import is_generator

_MORE = ("group", "having", "qualify", "offset")


def as_select(query: exp.Expr) -> exp.Select | None:
    """The query if it is one SELECT without grouping."""
    inner = query
    while isinstance(inner, exp.Subquery) and not any(v for part, v in inner.args.items() if part != "this"):
        inner = inner.this
    if not isinstance(inner, exp.Select) or any(inner.args.get(part) for part in _MORE) or not inner.args.get("from_"):
        return None
    return inner


def as_rows(query: exp.Expr) -> exp.Select | None:
    """The query if each of its rows is one of its FROM: then only its conditions say which rows there are."""
    select = as_select(query)
    if select is None or _limits(select) or any(_is_more(item) for item in select.expressions):
        return None
    return select


def _limits(select: exp.Select) -> bool:
    """LIMIT 1 and more changes nothing for a query that is asked for some row only."""
    limit = select.args.get("limit")
    if limit is None:
        return False
    value = limit.args.get("expression")
    return not (isinstance(value, exp.Literal) and value.is_int and int(value.name) > 0)


def _is_more(item: exp.Expr) -> bool:
    generates = any(is_generator(n) for n in own_nodes(item))
    return generates or has_aggregate(item) or has_window(item) or has_subquery(item)


@dataclass(frozen=True)
class Pulled:
    """The rows of a SELECT's FROM, and the conditions under which each belongs to a row of the query around."""

    ctx: Context
    rows: Scope
    both: Scope
    conditions: tuple[exp.Expr, ...]

    def values(self, select: exp.Select) -> tuple[exp.Expr, ...]:
        """The SELECT list, over the columns of both."""
        _, items = select_items(self.ctx, self.both, select.expressions)
        return tuple(item.value for item in items)


def pulled(ctx: Context, scope: Scope, select: exp.Select) -> Pulled:
    """Splits WHERE. A SELECT that speaks of the query around elsewhere ends in UnknownColumn."""
    ctx = with_ctes(ctx, select)
    rows = from_clause(ctx, select, None)
    both = Scope(rows.node, (rows.own, *scope.layers), scope.carried, scope.given)
    local: list[exp.Expr] = []
    outer: list[exp.Expr] = []
    for condition in conjuncts(where_of(select)):
        if has_subquery(condition):
            rows = ctx.filter_rows(ctx, rows, condition_of(ctx, condition, in_scope(ctx, rows)))
            continue
        found = condition_of(ctx, condition, in_scope(ctx, both))
        (local if columns_in(found) <= set(rows.node.names) else outer).append(found)
    node: Node = Filter(rows.node, conjunction(*local)) if local else rows.node
    return Pulled(ctx, rows.with_node(node), both, tuple(outer))


def where_of(select: exp.Select) -> exp.Expr:
    clause = select.args.get("where")
    return exp.true() if clause is None else clause.this
