"""Scalar expressions: which columns they read, what type they have, whether they can be null."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from matview.algebra.schema import Field

DIALECT = "spark"


def column(name: str) -> exp.Column:
    """A reference to a column of a relation."""
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def columns_in(expression: exp.Expr) -> set[str]:
    if isinstance(expression, exp.Column):
        return {expression.name}
    return {c.name for c in expression.find_all(exp.Column)}


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def conjunction(*conditions: exp.Expr) -> exp.Expr:
    """All of them; of none, TRUE."""
    parts = [c.copy() for c in conditions]
    return exp.and_(*parts) if parts else exp.true()


def conjuncts(condition: exp.Expr) -> tuple[exp.Expr, ...]:
    """The conditions that AND puts together."""
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        return (*conjuncts(inner.left), *conjuncts(inner.right))
    return () if _is_true(inner) else (inner,)


def _is_true(condition: exp.Expr) -> bool:
    return isinstance(condition, exp.Boolean) and bool(condition.this)


def same(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Equal, nulls included."""
    return exp.NullSafeEQ(this=left.copy(), expression=right.copy())


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.func(name, *(a.copy() for a in arguments), dialect=DIALECT)


def renamed(expression: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    """The expression over columns that are called something else."""
    return substituted(expression, {old: column(new) for old, new in names.items()})


def substituted(expression: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """The expression with other expressions in place of columns."""

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in values:
            return _inside(node.parent, values[node.name].copy())
        return node

    return expression.copy().transform(swap)


_OPERATORS = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Bracket)


def _inside(parent: exp.Expr | None, expression: exp.Expr) -> exp.Expr:
    """In parentheses where operators would otherwise bind in another way: trees print as they stand."""
    if isinstance(parent, exp.Paren) or isinstance(expression, exp.Paren):
        return expression
    bare = isinstance(parent, _OPERATORS) and isinstance(expression, (*_OPERATORS, exp.Case))
    return exp.paren(expression, copy=False) if bare else expression


def type_of(expression: exp.Expr, given: Mapping[str, Field]) -> str:
    """Its Spark type as text; empty when it cannot be told without Spark."""
    if isinstance(expression, exp.Column):
        return given[expression.name].type
    types = tuple((name, given[name].type) for name in sorted(columns_in(expression)))
    return _type_over(expression, types) if all(kind for _, kind in types) else ""


@lru_cache(maxsize=4096)
def _type_over(expression: exp.Expr, types: tuple[tuple[str, str], ...]) -> str:
    """Remembered: every refresh of a view asks the same again, and each answer takes parsing and annotating."""
    typed = substituted(expression, {name: _typed_null(kind) for name, kind in types})
    found = annotate_types(typed, dialect=DIALECT).type
    if found is None or found.this in (exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL):
        return ""
    return found.sql(DIALECT).lower()


def _typed_null(kind: str) -> exp.Expr:
    return exp.cast(exp.null(), exp.DataType.build(kind, dialect=DIALECT))


_NEVER_NULL = (exp.Count, exp.Is, exp.NullSafeEQ, exp.Exists, exp.CountIf)


def nullable(expression: exp.Expr, given: Mapping[str, Field]) -> bool:
    """Whether it may be null; when in doubt, it may."""
    match expression:
        case exp.Column():
            return given[expression.name].nullable
        case exp.Literal() | exp.Boolean():
            return False
        case exp.Paren() | exp.Alias():
            return nullable(expression.this, given)
        case exp.Coalesce():
            return all(nullable(e, given) for e in (expression.this, *expression.expressions))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.And() | exp.Or() | exp.EQ() | exp.NEQ() | exp.LT() | exp.GT():
            return nullable(expression.left, given) or nullable(expression.right, given)
        case exp.Not() | exp.Neg():
            return nullable(expression.this, given)
    return not isinstance(expression, _NEVER_NULL)
