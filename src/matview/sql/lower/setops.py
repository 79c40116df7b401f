"""UNION, EXCEPT and INTERSECT, with and without ALL: columns by position, named as in the left query."""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import Aggregate, Node, SetOp, UnionAll
from matview.algebra.scalars import column
from matview.sql.lower.context import Context, Lowered
from matview.sql.lower.ordering import explicit, limit_of, top
from matview.sql.lower.resolve import in_scope, resolve
from matview.sql.lower.scope import Given, Layer, Scope, Visible
from matview.sql.lower.select import at_ordinal
from matview.sql.lower.sources import with_ctes


def lower_set_operation(ctx: Context, query: exp.SetOperation, given: Given | None, label: str) -> Lowered:
    ctx.allow(query, "with_", "this", "expression", "distinct", "order", "limit", "offset")
    ctx = with_ctes(ctx, query)
    left = ctx.lower_query(ctx, query.this, given, label)
    right = ctx.lower_query(ctx, query.expression, given, label)
    if len(left.columns) != len(right.columns):
        what = f"{query.key.upper()} of queries with {len(left.columns)} and {len(right.columns)} columns"
        raise ctx.bad(what, query.expression, "give both the same number of columns")
    made = Lowered(_combined(query, left.node, right.node), left.columns, left.carried)
    return limited(ctx, query, made)


def _combined(query: exp.SetOperation, left: Node, right: Node) -> Node:
    match query, bool(query.args.get("distinct")):
        case exp.Except(), True:
            return SetOp("except", left, right)
        case exp.Except(), False:
            return SetOp("except all", left, right)
        case exp.Intersect(), True:
            return SetOp("intersect", left, right)
        case exp.Intersect(), False:
            return SetOp("intersect all", left, right)
        case _, True:
            both = UnionAll((left, right))
            return Aggregate(both, both.names)
    return UnionAll((left, right))


def limited(ctx: Context, query: exp.Expr, lowered: Lowered) -> Lowered:
    """ORDER BY and LIMIT behind a whole query: they speak of its columns."""
    limit = limit_of(ctx, query)
    visible = tuple(Visible("", name, target) for name, target in lowered.columns)
    find = in_scope(ctx, Scope(lowered.node, (Layer(visible),)))
    values = [column(target) for _, target in lowered.columns]
    order: list[exp.Ordered] = []
    for ordered in query.args["order"].expressions if query.args.get("order") else []:
        spot = ordered.this
        is_ordinal = isinstance(spot, exp.Literal) and spot.is_int
        order.append(explicit(ordered, at_ordinal(ctx, spot, values) if is_ordinal else resolve(ctx, spot, find)))
    if limit is None:
        return lowered
    node = top(ctx, lowered.node, order, limit, lowered.carried, query)
    return Lowered(node, lowered.columns, lowered.carried)
