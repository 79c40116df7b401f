"""EXISTS and IN as values (under OR, in CASE, in a SELECT list): matches are counted, then the counts are looked at."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from matview.algebra.conditions import alike
from matview.algebra.nodes import Aggregate, Join, Node, Outer
from matview.algebra.scalars import column, conjunction, number, renamed
from matview.sql.lower.context import Context, Lowered
from matview.sql.lower.correlation import correlation, tied
from matview.sql.lower.functions import bare
from matview.sql.lower.grouping import wider
from matview.sql.lower.quantified import equality
from matview.sql.lower.scope import Scope

Valued = tuple[Scope, exp.Expr]
"""The relation with more columns, and a value over them."""


def exists_value(ctx: Context, scope: Scope, test: exp.Exists) -> Valued:
    """Whether there is a row: true or false, never unknown."""
    used = correlation(ctx, scope, test.this)
    lowered = ctx.lower_query(ctx, test.this, scope.asking(used) if used else None, "subquery")
    rows = ctx.names.fresh("rows")
    counts = Aggregate(lowered.node, lowered.carried, ((rows, _count(exp.Star())),))
    return scope.with_node(beside(scope.node, counts, used, lowered)), _some(rows)


def in_value(ctx: Context, scope: Scope, test: exp.In) -> Valued:
    """True if some row equals, else unknown if some comparison is, else false; over no rows, false."""
    scope, asked = _as_columns(ctx, scope, test)
    query = test.args["query"]
    outer = correlation(ctx, scope, query)
    if not outer and len(asked) == 1 and (found := _in_list(ctx, scope, asked[0], test)):
        return found
    used = tuple(dict.fromkeys((*outer, *asked)))
    lowered = ctx.lower_query(ctx, query, scope.asking(used), "subquery")
    looked_for = exp.Tuple(expressions=[column(name) for name in asked])
    values = tuple(column(name) for _, name in lowered.columns)
    equal = renamed(equality(ctx, exp.In(this=looked_for), values), dict(zip(used, lowered.carried, strict=True)))
    hits, unknowns = ctx.names.fresh("hits"), ctx.names.fresh("unknowns")
    unknown = exp.Is(this=exp.paren(equal), expression=exp.null())
    aggregates = ((hits, _count(_one_if(equal))), (unknowns, _count(_one_if(unknown))))
    counts = Aggregate(lowered.node, lowered.carried, aggregates)
    value = exp.Case(
        ifs=[exp.If(this=_some(hits), true=exp.true()), exp.If(this=_some(unknowns), true=exp.null())],
        default=exp.false(),
    )
    return scope.with_node(beside(scope.node, counts, used, lowered)), value


def _in_list(ctx: Context, scope: Scope, asked: str, test: exp.In) -> Valued | None:
    """One column of a query that is the same for every row: looked up, with counts of all rows and of all values.

    None where several values may equal what is asked for ('1' and '01' both equal 1).
    """
    saved = ctx.names.saved()
    lowered = ctx.lower_query(ctx, test.args["query"], None, "subquery")
    equal = equality(ctx, exp.In(this=column(asked)), [column(name) for _, name in lowered.columns])
    ((_, value),) = lowered.columns
    if not alike(lowered.node.field(value).type, scope.node.field(asked).type):
        ctx.names.restore(saved)
        return None
    hits, rows, values = (ctx.names.fresh(name) for name in ("hits", "rows", "values"))
    totals = Aggregate(lowered.node, (), ((rows, _count(exp.Star())), (values, _count(column(value)))))
    found = Aggregate(lowered.node, (value,), ((hits, _count(exp.Star())),))
    node = Outer("left", Join((scope.node, totals)), found, equal)
    missing = exp.GT(this=column(rows), expression=column(values))
    unknown = exp.and_(_some(rows), exp.or_(exp.Is(this=column(asked), expression=exp.null()), missing))
    made = exp.Case(
        ifs=[exp.If(this=_some(hits), true=exp.true()), exp.If(this=unknown, true=exp.null())], default=exp.false()
    )
    return scope.with_node(node), made


def _as_columns(ctx: Context, scope: Scope, test: exp.In) -> tuple[Scope, tuple[str, ...]]:
    """What is looked for, as columns of the relation."""
    asked = test.this.expressions if isinstance(test.this, exp.Tuple) else [bare(test.this)]
    made = [(ctx.names.fresh("sought"), value) for value in asked if not isinstance(value, exp.Column)]
    names = iter(made)
    columns = tuple(value.name if isinstance(value, exp.Column) else next(names)[0] for value in asked)
    return scope.with_node(wider(scope.node, made)), columns


def beside(node: Node, found: Node, used: Sequence[str], lowered: Lowered) -> Node:
    """Each row with what was found for it; one row found for all is simply put beside."""
    if not used:
        return Join((node, found))
    return Outer("left", node, found, conjunction(*tied(used, lowered)))


def _count(value: exp.Expr) -> exp.Expr:
    return exp.Count(this=value, big_int=True)


def _one_if(condition: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=number(1))])


def _some(count: str) -> exp.Expr:
    there = exp.Coalesce(this=column(count), expressions=[number(0)])
    return exp.paren(exp.GT(this=there, expression=number(0)))
