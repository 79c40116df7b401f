"""EXISTS and IN as conditions on rows: semi joins and anti joins, with SQL's rules for nulls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from matview.algebra.nodes import Node, Semi
from matview.algebra.scalars import column, conjunction, nullable
from matview.errors import UnknownColumn
from matview.sql.lower.context import Context
from matview.sql.lower.correlation import correlation, tied
from matview.sql.lower.functions import bare
from matview.sql.lower.pulled import as_rows, pulled
from matview.sql.lower.scope import Scope


def is_test(node: exp.Expr) -> bool:
    """EXISTS (query) or x IN (query)."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Exists) and isinstance(node.this, exp.Query)


def matching(ctx: Context, scope: Scope, test: exp.Expr, kind: Literal["semi", "anti"]) -> Scope:
    """The rows for which the test holds (semi), or for which its denial does (anti)."""
    query = test.this if isinstance(test, exp.Exists) else test.args["query"]
    found = _rows(ctx, scope, query)
    conditions = list(found.conditions)
    if isinstance(test, exp.In):
        equal = equality(ctx, test, found.values)
        conditions.append(equal if kind == "semi" else _not_unequal(equal, scope.node, found.node))
    return scope.with_node(Semi(kind, scope.node, found.node, conjunction(*conditions)))


def _not_unequal(equal: exp.Expr, left: Node, right: Node) -> exp.Expr:
    """NOT IN keeps a row only if every comparison is false: unknown is as bad as true."""
    given = {f.name: f for f in (*left.fields, *right.fields)}
    return exp.Coalesce(this=equal, expressions=[exp.true()]) if nullable(equal, given) else equal


def equality(ctx: Context, test: exp.In, values: Sequence[exp.Expr]) -> exp.Expr:
    """What is asked for equals a row of the query."""
    asked = test.this.expressions if isinstance(test.this, exp.Tuple) else [bare(test.this)]
    if len(asked) != len(values):
        raise ctx.bad(
            f"{len(asked)} values are looked for among rows of {len(values)} columns", test, "select as many columns"
        )
    pairs = zip(asked, values, strict=True)
    return conjunction(*(exp.EQ(this=_closed(a), expression=_closed(b)) for a, b in pairs))


def _closed(value: exp.Expr) -> exp.Expr:
    return exp.paren(value) if isinstance(value, exp.Binary | exp.Not) else value.copy()


@dataclass(frozen=True)
class _Rows:
    """A subquery's rows, the conditions that tie them to the query around, and its columns over both."""

    node: Node
    conditions: tuple[exp.Expr, ...]
    values: tuple[exp.Expr, ...]


def _rows(ctx: Context, scope: Scope, query: exp.Expr) -> _Rows:
    used = correlation(ctx, scope, query)
    select = as_rows(query) if used else None
    if select is not None:
        saved = ctx.names.saved()
        try:
            found = pulled(ctx, scope, select)
            return _Rows(found.rows.node, found.conditions, found.values(select))
        except UnknownColumn:  # it speaks of the query around in more than its conditions
            ctx.names.restore(saved)
    lowered = ctx.lower_query(ctx, query, scope.asking(used) if used else None, "subquery")
    return _Rows(lowered.node, tied(used, lowered), tuple(column(name) for _, name in lowered.columns))
