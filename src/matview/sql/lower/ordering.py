"""ORDER BY and LIMIT: a view is a bag, so an order matters only where it says which rows there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.keys import key_of
from matview.algebra.nodes import Filter, Node, Project, TopK, Window
from matview.algebra.scalars import column, conjunction, number
from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import bare

_MOST = 2**31 - 1
"""The largest LIMIT that Spark takes."""


@dataclass(frozen=True)
class Limit:
    """So many rows after so many others."""

    rows: int
    offset: int = 0


def limit_of(ctx: Context, query: exp.Expr) -> Limit | None:
    """What LIMIT and OFFSET say; None if they leave every row."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    skipped = _whole(ctx, offset.expression) if offset else 0
    rows = _rows(ctx, limit) if limit else None
    if rows is None:
        return Limit(_MOST - skipped, skipped) if skipped else None
    return Limit(rows, skipped)


def _rows(ctx: Context, limit: exp.Expr) -> int | None:
    if isinstance(limit, exp.Fetch):
        ctx.allow(limit, "direction", "count", "limit_options")
        return _whole(ctx, limit.args["count"])
    ctx.allow(limit, "expression")
    if isinstance(limit.expression, exp.Var) and limit.expression.name.upper() == "ALL":
        return None
    return _whole(ctx, limit.expression)


def _whole(ctx: Context, value: exp.Expr) -> int:
    inner = bare(value)
    if not isinstance(inner, exp.Literal) or not inner.is_int:
        raise ctx.refused(f"LIMIT and OFFSET need a whole number, not `{shown(value)}`", value, "write the number")
    return int(inner.name)


def explicit(ordered: exp.Ordered, value: exp.Expr) -> exp.Ordered:
    """An ORDER BY item over another expression, with its place for nulls written out as Spark has it."""
    descending = bool(ordered.args.get("desc"))
    first = ordered.args.get("nulls_first")
    nulls_first = not descending if first is None else bool(first)
    return exp.Ordered(this=value.copy(), desc=descending or None, nulls_first=nulls_first)


def ascending(name: str) -> exp.Ordered:
    return exp.Ordered(this=column(name), nulls_first=True)


def ties_broken(
    ctx: Context, order: Sequence[exp.Ordered], node: Node, spot: exp.Expr | None, known: Sequence[str] = ()
) -> tuple[exp.Ordered, ...]:
    """The order, ended by the key, or by every column where there is none: only equal rows are left tied."""
    there = {o.this.name for o in order if isinstance(o.this, exp.Column)} | set(known)
    key = key_of(node)
    more = [f for f in node.fields if f.name not in there and (key is None or f.name in key)]
    if odd := next((f for f in more if f.type.startswith(("map", "variant"))), None):
        raise ctx.refused(f"rows that tie cannot be ordered: `{odd.name}` is a {odd.type}", spot, "order by a key")
    return (*order, *(ascending(f.name) for f in more))


def top(
    ctx: Context, node: Node, order: Sequence[exp.Ordered], limit: Limit, carried: Sequence[str], spot: exp.Expr
) -> Node:
    """The first rows in the order; of a correlated query, the first for each row that it is asked for."""
    total = ties_broken(ctx, order, node, spot, carried)
    if not carried:
        return TopK(node, total, limit.rows, limit.offset)
    number_of = ctx.names.fresh("row_number")
    numbered = Window(node, tuple(carried), ((number_of, _row_number(carried, total)),))
    kept = tuple((name, column(name)) for name in node.names)
    return Project(Filter(numbered, _between(number_of, limit)), kept)


def _row_number(carried: Sequence[str], order: Sequence[exp.Ordered]) -> exp.Expr:
    ordering = exp.Order(expressions=[o.copy() for o in order])
    return exp.Window(this=exp.RowNumber(), partition_by=[column(c) for c in carried], order=ordering, over="OVER")


def _between(name: str, limit: Limit) -> exp.Expr:
    if limit == Limit(1):
        return exp.EQ(this=column(name), expression=number(1))
    after = exp.GT(this=column(name), expression=number(limit.offset))
    return conjunction(after, exp.LTE(this=column(name), expression=number(limit.offset + limit.rows)))
