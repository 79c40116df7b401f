"""FROM and its joins, LATERAL subqueries and LATERAL VIEW included; a right join is a left join with sides swapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from matview.algebra.nodes import Join, Node, Outer, Project, Semi
from matview.algebra.scalars import column, conjunction, conjuncts
from matview.errors import UnknownColumn
from matview.sql.lower.context import Context, shown
from matview.sql.lower.correlation import correlation, tied
from matview.sql.lower.functions import has_aggregate, has_subquery, has_window
from matview.sql.lower.resolve import in_scope, resolve
from matview.sql.lower.scope import Given, Layer, Scope, Visible
from matview.sql.lower.sources import (
    UNIT,
    beside,
    derived_scope,
    table_scope,
    unqualified,
    values_scope,
)
from matview.sql.lower.unnest import lateral_view


def from_clause(ctx: Context, select: exp.Select, given: Given | None) -> Scope:
    """What a SELECT reads, for each of the rows it is asked for."""
    scope = _relations(ctx, select, given)
    for view in select.args.get("laterals") or []:
        scope = lateral_view(ctx, scope, view)
    return scope


def _relations(ctx: Context, select: exp.Select, given: Given | None) -> Scope:
    clause = select.args.get("from_")
    joins = select.args.get("joins") or []
    if clause is None:
        return Scope(UNIT) if given is None else given.scope(ctx.names)
    if given is None:
        return _joined(ctx, None, clause.this, joins)
    saved = ctx.names.saved()
    around = given.scope(ctx.names)
    try:
        rows = _joined(ctx, None, clause.this, joins)
    except UnknownColumn:  # FROM itself speaks of the query around
        ctx.names.restore(saved)
        return _joined(ctx, given.scope(ctx.names), clause.this, joins)
    return replace(around, node=Join((around.node, rows.node)), layers=(rows.own, *around.layers[1:]))


def _joined(ctx: Context, around: Scope | None, first: exp.Expr, joins: Sequence[exp.Join]) -> Scope:
    scope = _first(ctx, around, first)
    apart: tuple[Visible, ...] = ()
    for join in joins:
        if join.side in ("RIGHT", "FULL") and (around is not None or (apart and not _speaks_of(apart, join))):
            raise _unclear(ctx, join)
        if join.kind == "CROSS":
            apart = scope.own.shown
        scope = _join(ctx, scope, join)
    return scope


def _speaks_of(apart: tuple[Visible, ...], join: exp.Join) -> bool:
    """Whether ON names what stands before a comma or CROSS JOIN: then it was CROSS JOIN, and all of it is joined.

    The parser does not tell the two apart, but a join after a comma has its own left side only.
    """
    condition = join.args.get("on")
    named = [part.name for c in condition.find_all(exp.Column) for part in c.parts[:1]] if condition else []
    return any(v.is_of(name) for name in named for v in apart)


def _unclear(ctx: Context, join: exp.Join) -> Exception:
    what = f"{join.side} JOIN after a comma or a CROSS JOIN, or in a subquery whose FROM speaks of the query around"
    return ctx.refused(what, join, "put the join in parentheses of its own: FROM a, (SELECT ... FROM b RIGHT JOIN c)")


def _first(ctx: Context, around: Scope | None, source: exp.Expr) -> Scope:
    right, conditions = _relation(ctx, around or Scope(UNIT), source)
    if around is None:
        return right
    return around.with_own(right.own).with_node(Join((around.node, right.node), conditions))


def _relation(ctx: Context, left: Scope, source: exp.Expr) -> tuple[Scope, tuple[exp.Expr, ...]]:
    """What stands in FROM, and the conditions that tie it to what stands before it."""
    match source:
        case exp.Table():
            return _chain(ctx, table_scope(ctx, source), source), ()
        case exp.Values():
            return values_scope(ctx, source), ()
        case exp.Subquery() if isinstance(source.this, exp.Table):
            ctx.allow(source, "this", "alias")
            inner, _ = _relation(ctx, Scope(UNIT), source.this)
            return inner.with_own(unqualified(inner.own, source.alias)), ()
        case exp.Subquery():
            ctx.allow(source, "this", "alias", "with_", "joins")
            scope, conditions = _derived(ctx, left, source)
            return _chain(ctx, scope, source), conditions
        case exp.Lateral() if isinstance(source.this, exp.Subquery):
            ctx.allow(source, "this", "alias")
            return _lateral(ctx, left, source, source.this.this)
    raise ctx.refused(f"`{shown(source)}` in FROM has no rule", source, "use a table, a query or VALUES")


def _chain(ctx: Context, scope: Scope, source: exp.Expr) -> Scope:
    """Joins that the parser hangs on a relation in parentheses."""
    for join in source.args.get("joins") or []:
        scope = _join(ctx, scope, join)
    return scope


def _derived(ctx: Context, left: Scope, source: exp.Subquery) -> tuple[Scope, tuple[exp.Expr, ...]]:
    query, label = source.this if source.args.get("with_") is None else source, source.alias or "query"
    if left.given is None:
        return derived_scope(ctx, source, ctx.lower_query(ctx, query, None, label)), ()
    around = left.with_own(Layer())
    return _lateral(ctx, around, source, query)


def _lateral(ctx: Context, left: Scope, source: exp.Expr, query: exp.Expr) -> tuple[Scope, tuple[exp.Expr, ...]]:
    """A query that may speak of what stands before it: evaluated for each of those rows, then joined to them."""
    used = correlation(ctx, left, query)
    lowered = ctx.lower_query(ctx, query, left.asking(used) if used else None, source.alias or "query")
    return derived_scope(ctx, source, lowered), tied(used, lowered)


# the kinds of join ----------------------------------------------------------------------------------------------------


def _join(ctx: Context, left: Scope, join: exp.Join) -> Scope:
    ctx.allow(join, "this", "on", "using", "method", "side", "kind", "hint")
    if join.method not in ("", "NATURAL"):
        raise ctx.refused(f"{join.method} JOIN has no rule", join)
    right, tying = _relation(ctx, left, join.this)
    if tying and join.side in ("RIGHT", "FULL"):
        raise _unclear(ctx, join)
    if shared := _shared(ctx, left, right, join):
        return _using(ctx, left, right, join, shared, tying)
    both = left.with_own(beside(left, right))
    return _on(ctx, both, left, right, join, tying)


def _on(ctx: Context, both: Scope, left: Scope, right: Scope, join: exp.Join, tying: tuple[exp.Expr, ...]) -> Scope:
    condition = join.args.get("on")
    on = exp.true() if condition is None else _condition(ctx, both, condition)
    if has_subquery(on):
        if not _is_inner(join):
            raise ctx.refused(f"a subquery in the ON of {_kind(join)} JOIN has no rule", condition)
        return ctx.filter_rows(ctx, both.with_node(Join((left.node, right.node), tying)), on)
    node = combined(ctx, join, left.node, right.node, (*tying, *conjuncts(on)))
    return (left if _keeps_left_only(join) else both).with_node(node)


def _condition(ctx: Context, scope: Scope, condition: exp.Expr) -> exp.Expr:
    if has_aggregate(condition) or has_window(condition):
        raise ctx.bad("ON cannot have an aggregate or a window function", condition, "compute it in a query in FROM")
    return resolve(ctx, condition, in_scope(ctx, scope))


def _kind(join: exp.Join) -> str:
    return " ".join(word for word in (join.side, join.kind) if word and word != "OUTER") or "INNER"


def _is_inner(join: exp.Join) -> bool:
    return _kind(join) in ("INNER", "CROSS")


def _keeps_left_only(join: exp.Join) -> bool:
    return join.kind in ("SEMI", "ANTI")


def combined(ctx: Context, join: exp.Join, left: Node, right: Node, on: tuple[exp.Expr, ...]) -> Node:
    match _kind(join):
        case "INNER" | "CROSS":
            return Join((left, right), on)
        case "LEFT":
            return Outer("left", left, right, conjunction(*on))
        case "RIGHT":
            return Outer("left", right, left, conjunction(*on))
        case "FULL":
            return Outer("full", left, right, conjunction(*on))
        case "LEFT SEMI" | "SEMI":
            return Semi("semi", left, right, conjunction(*on))
        case "LEFT ANTI" | "ANTI":
            return Semi("anti", left, right, conjunction(*on))
    raise ctx.refused(f"{_kind(join)} JOIN has no rule", join)


# USING and NATURAL ----------------------------------------------------------------------------------------------------

Shared = tuple[tuple[Visible, Visible], ...]
"""The columns that USING names, on the left and on the right."""


def _shared(ctx: Context, left: Scope, right: Scope, join: exp.Join) -> Shared:
    if using := join.args.get("using"):
        return tuple((_one(ctx, left, name), _one(ctx, right, name)) for name in using)
    if join.method != "NATURAL":
        return ()
    names = [v.name for v in left.own.shown if any(w.is_called(v.name) for w in right.own.shown)]
    spots = [exp.to_identifier(name, quoted=True) for name in names]
    return tuple((_one(ctx, left, spot, join), _one(ctx, right, spot, join)) for spot in spots)


def _one(ctx: Context, scope: Scope, name: exp.Expr, where: exp.Expr | None = None) -> Visible:
    found = [v for v in scope.own.shown if v.is_called(name.name)]
    if not found:
        raise ctx.unknown(f"there is no column `{name.name}` on both sides of the join", where or name)
    if len(found) > 1:
        raise ctx.bad(f"`{name.name}` is ambiguous on one side of the join", where or name, "write ON instead of USING")
    return found[0]


def _using(
    ctx: Context, left: Scope, right: Scope, join: exp.Join, shared: Shared, tying: tuple[exp.Expr, ...]
) -> Scope:
    """The shared columns come first and once; the other side's answer to their qualified names."""
    equal = [exp.EQ(this=column(a.column), expression=column(b.column)) for a, b in shared]
    node = combined(ctx, join, left.node, right.node, (*tying, *equal))
    left_keys, right_keys = tuple(a for a, _ in shared), tuple(b for _, b in shared)
    left_rest = tuple(v for v in left.own.shown if v not in left_keys)
    right_rest = tuple(v for v in right.own.shown if v not in right_keys)
    hidden = (*left.own.hidden, *right.own.hidden)
    match _kind(join):
        case "LEFT SEMI" | "SEMI" | "LEFT ANTI" | "ANTI":
            return left.with_node(node).with_own(Layer((*left_keys, *left_rest), left.own.hidden))
        case "RIGHT":
            own = Layer((*right_keys, *left_rest, *right_rest), (*left_keys, *hidden))
        case "FULL":
            merged, node = _merged(ctx, node, shared)
            own = Layer((*merged, *left_rest, *right_rest), (*left_keys, *right_keys, *hidden))
        case _:
            own = Layer((*left_keys, *left_rest, *right_rest), (*right_keys, *hidden))
    return left.with_node(node).with_own(own)


def _merged(ctx: Context, node: Node, shared: Shared) -> tuple[tuple[Visible, ...], Node]:
    """Whichever side has a value."""
    columns = tuple(Visible("", a.name, ctx.names.fresh(f"using.{a.name}")) for a, _ in shared)
    values = [exp.Coalesce(this=column(a.column), expressions=[column(b.column)]) for a, b in shared]
    kept = [(name, column(name)) for name in node.names]
    made = [(v.column, value) for v, value in zip(columns, values, strict=True)]
    return columns, Project(node, (*kept, *made))
