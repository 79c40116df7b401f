"""What can be told from conditions: that nulls fail them, and which columns they make equal or constant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from sqlglot import exp

from matview.algebra.nodes import Filter, Node
from matview.algebra.scalars import column, columns_in, conjunction, conjuncts
from matview.algebra.schema import Field

Conditions = tuple[exp.Expr, ...]
Fields = Mapping[str, Field]


def fields_of(*nodes: Node) -> dict[str, Field]:
    """The fields of some relations by their names."""
    return {f.name: f for node in nodes for f in node.fields}


def each(conditions: Iterable[exp.Expr]) -> Conditions:
    """Their conjuncts, each once, in order."""
    return tuple(dict.fromkeys(part for condition in conditions for part in conjuncts(condition)))


def parted(conditions: Conditions, names: Collection[str]) -> tuple[Conditions, Conditions]:
    """Those that speak of these columns only (or of none), and the others."""
    known = set(names)
    inside = tuple(c for c in conditions if columns_in(c) <= known)
    return inside, tuple(c for c in conditions if not columns_in(c) <= known)


def filtered(node: Node, conditions: Conditions) -> Node:
    """The rows that meet all conditions."""
    return Filter(node, conjunction(*conditions)) if conditions else node


# nulls ----------------------------------------------------------------------------------------------------------------

_NULL_IF_ANY = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe),
    *(exp.Paren, exp.Neg, exp.Not, exp.Cast, exp.Upper, exp.Lower, exp.Abs, exp.Year, exp.Month, exp.Day),
)
"""Expressions that are null when any of their operands is."""


def fails_on_nulls(condition: exp.Expr, names: Collection[str]) -> bool:
    """Whether the condition is certainly not true when all these columns are null."""
    match condition:
        case exp.Paren():
            return fails_on_nulls(condition.this, names)
        case exp.And():
            return fails_on_nulls(condition.left, names) or fails_on_nulls(condition.right, names)
        case exp.Or():
            return fails_on_nulls(condition.left, names) and fails_on_nulls(condition.right, names)
        case exp.Not(this=exp.Is(this=asked, expression=exp.Null())):
            return _null(asked, names)
        case exp.NullSafeEQ():
            sides = (condition.left, condition.right)
            return any(_null(s, names) for s in sides) and any(isinstance(s, exp.Literal) for s in sides)
        case exp.Boolean():
            return not condition.this
    return _null(condition, names)


def _null(expression: exp.Expr, names: Collection[str]) -> bool:
    """Whether the expression is certainly null when all these columns are."""
    match expression:
        case exp.Column():
            return expression.name in names
        case exp.Null():
            return True
        case exp.Between() | exp.In():
            return _null(expression.this, names)
    if not isinstance(expression, _NULL_IF_ANY):
        return False
    return any(_null(part, names) for part in expression.iter_expressions() if not isinstance(part, exp.DataType))


# equality -------------------------------------------------------------------------------------------------------------

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})


def equal_columns(conditions: Iterable[exp.Expr], fields: Fields) -> Iterator[tuple[str, str]]:
    """Pairs of columns that have the same value in every row that meets the conditions."""
    for condition in conditions:
        match condition:
            case (
                exp.EQ(this=exp.Column() as one, expression=exp.Column() as other)
                | exp.NullSafeEQ(this=exp.Column() as one, expression=exp.Column() as other)
            ):
                if alike(fields[one.name].type, fields[other.name].type):
                    yield one.name, other.name


def alike(one: str, other: str) -> bool:
    """Whether values of these types that are equal are the same, so that each tells the other ('01' = 1 does not)."""
    return bool(one) and (one == other or {one, other} <= _WHOLE)


def constants(conditions: Iterable[exp.Expr], fields: Fields) -> Iterator[tuple[str, exp.Expr]]:
    """Columns that have one value in all rows that meet the conditions, and that value."""
    for condition in conditions:
        if not isinstance(condition, exp.EQ):
            continue
        for one, value in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(one, exp.Column) and _tells(value, fields[one.name].type):
                yield one.name, value


def _tells(value: exp.Expr, kind: str) -> bool:
    """Whether only one value of the type equals the constant; texts that are cast to numbers do so in several ways."""
    if columns_in(value) or not kind:
        return False
    return kind in _EXACT or (isinstance(value, exp.Literal) and value.is_string)


_EXACT = _WHOLE | {"date", "timestamp", "timestamp_ntz", "boolean"}


def implied_constants(conditions: Conditions, fields: Fields) -> Conditions:
    """From `x = 5` and `x = y`, `y = 5`: those that do not stand there already."""
    known = dict(constants(conditions, fields))
    pairs = [p for pair in equal_columns(conditions, fields) for p in (pair, pair[::-1])]
    found: list[exp.Expr] = []
    waiting = list(known)
    while waiting:
        name = waiting.pop()
        for other in (y for x, y in pairs if x == name and y not in known):
            known[other] = known[name]
            found.append(exp.EQ(this=column(other), expression=known[name].copy()))
            waiting.append(other)
    return tuple(found)
