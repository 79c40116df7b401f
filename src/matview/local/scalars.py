"""Scalar expressions as functions of a row: those that Python computes as Spark does, under its ANSI rules.

What could overflow, round or fail raises NotLocal when it would, so that Spark does it, or says why not.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlglot import exp

from matview.local.kinds import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    EXACT,
    INT,
    NULL,
    STRING,
    UNKNOWN,
    WIDTHS,
    Kind,
    NotLocal,
    Value,
    adjusted,
    kind_of,
    normal,
    widest,
)

Row = Sequence[Value]
Function = Callable[[Row], Value]
Name = tuple[str, ...]
"""A column's name, and before it that of its relation, where there is one."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """What an expression is of each row."""

    kind: Kind
    of: Function

    @property
    def is_moved(self) -> bool:
        """It is a column, and nothing is computed."""
        return isinstance(self.of, itemgetter)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where the columns are in a row, and of which kind they are.

    `tests` has the conditions of CASE that were met so far, where many expressions of one row have them in common.
    """

    columns: Mapping[Name, tuple[int, Kind]]
    tests: dict[exp.Expr, Function] | None = None

    @classmethod
    def of(cls, names: Sequence[str], kinds: Sequence[Kind]) -> Scope:
        return cls({(name,): (place, kind) for place, (name, kind) in enumerate(zip(names, kinds, strict=True))})

    def column(self, expression: exp.Column) -> Scalar:
        name = tuple(part.name for part in expression.parts)
        if name not in self.columns:
            raise NotLocal(f"no column {name}")
        place, kind = self.columns[name]
        return Scalar(kind, itemgetter(place))


def tabulated(made: Sequence[Scalar], rows: Sequence[Row]) -> list[Sequence[Value]]:
    """What each of them is of the rows, column by column. What is only moved is moved as a column, which is many times
    faster; what is computed is computed row by row, so that conditions in common are looked at once."""
    others = [one.of for one in made if not one.is_moved]
    computed: list[list[Value]] = [[] for _ in others]
    adding = [(of, column.append) for of, column in zip(others, computed, strict=True)]
    for row in rows if adding else ():
        for of, add in adding:
            add(of(row))
    waiting = iter(computed)
    return [list(map(one.of, rows)) if one.is_moved else next(waiting) for one in made]


def scalar(expression: exp.Expr, scope: Scope) -> Scalar:
    """The expression over the columns of a scope."""
    match expression:
        case exp.Column():
            return scope.column(expression)
        case exp.Paren() | exp.Alias():
            return scalar(expression.this, scope)
        case exp.Literal() | exp.Boolean() | exp.Null():
            return _constant(expression)
        case exp.Neg(this=exp.Literal(is_string=False)):
            return _number(str(expression.this.this), -1)
        case exp.Cast():
            return _cast(expression, scope)
        case exp.And() | exp.Or() | exp.Not() | exp.Is() | exp.In() | exp.Between() | exp.Predicate():
            return _condition(expression, scope)
        case exp.Case() | exp.If():
            return _case(expression, scope)
        case exp.Coalesce() | exp.Least() | exp.Greatest() | exp.Nullif():
            return _one_of(expression, scope)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Neg() | exp.Abs():
            return _arithmetic(expression, scope)
    raise NotLocal(f"{type(expression).__name__} is for Spark to compute")


# constants and casts --------------------------------------------------------------------------------------------------


def _constant(expression: exp.Expr) -> Scalar:
    match expression:
        case exp.Null():
            return Scalar(NULL, lambda _: None)
        case exp.Boolean():
            truth = bool(expression.this)
            return Scalar(BOOLEAN, lambda _: truth)
        case exp.Literal(this=text) if expression.is_string:
            told = str(text).encode()
            return Scalar(STRING, lambda _: told)
    return _number(str(expression.this))


def _number(text: str, sign: int = 1) -> Scalar:
    """A number that is written out, with its sign."""
    if text.isdigit():
        whole = sign * int(text)
        kind = INT if -(1 << 31) <= whole < 1 << 31 else BIGINT
        kind.checked(whole)
        return Scalar(kind, lambda _: whole)
    if set(text) <= set("0123456789."):
        value = Decimal(text if sign > 0 else f"-{text}")
        scale = len(text.partition(".")[2])
        digits = max(scale, len(text.replace(".", "").lstrip("0")), 1)
        return Scalar(Kind("decimal", digits, scale), lambda _: value)
    raise NotLocal(f"the number {text}")


def _kind(to: exp.DataType) -> Kind:
    is_plain = not any(value for name, value in to.args.items() if name != "this")
    return _plain_kind(to.this) if is_plain else kind_of(to.sql("spark"))


@lru_cache(64)
def _plain_kind(name: object) -> Kind:
    return kind_of(exp.DataType(this=name).sql("spark"))


def _cast(expression: exp.Cast, scope: Scope) -> Scalar:
    target = _kind(expression.to)
    if target == DATE and isinstance(expression.this, exp.Literal) and expression.this.is_string:
        return _date(str(expression.this.this))
    given = scalar(expression.this, scope)
    if given.kind == target:
        return given
    if given.kind == NULL:
        return Scalar(target, lambda _: None)
    return Scalar(target, _converted(given, target))


def _date(text: str) -> Scalar:
    """One that is written in full: Python takes other spellings than Spark does."""
    try:
        days = (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days if _DATE.fullmatch(text) else None
    except ValueError:
        days = None
    if days is None:
        raise NotLocal(f"the date {text}")
    return Scalar(DATE, lambda _: days)


def _converted(given: Scalar, target: Kind) -> Function:
    of = given.of
    if target.is_whole and given.kind.is_whole:
        return lambda row: target.checked(of(row))
    if target.name == "decimal" and given.kind.is_exact and given.kind.scale <= target.scale:
        return lambda row: target.checked(_decimal(of(row)))
    if target == DOUBLE and given.kind.is_whole:
        return lambda row: None if (value := of(row)) is None else float(value)
    raise NotLocal(f"a cast of {given.kind.name} to {target.name}")


def _decimal(value: Value) -> Value:
    return value if value is None or isinstance(value, Decimal) else Decimal(int(value))


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


# conditions -----------------------------------------------------------------------------------------------------------

_COMPARED: dict[type[exp.Expr], Callable[[Value, Value], bool]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,  # type: ignore[operator]
    exp.LTE: lambda a, b: a <= b,  # type: ignore[operator]
    exp.GT: lambda a, b: a > b,  # type: ignore[operator]
    exp.GTE: lambda a, b: a >= b,  # type: ignore[operator]
}


def _condition(expression: exp.Expr, scope: Scope) -> Scalar:
    match expression:
        case exp.And() | exp.Or():
            return _connected(expression, scope)
        case exp.Not():
            inner = _truth(expression.this, scope)
            return Scalar(BOOLEAN, lambda row: None if (value := inner(row)) is None else not value)
        case exp.Is() if isinstance(expression.expression, exp.Null):
            of = scalar(expression.this, scope).of
            return Scalar(BOOLEAN, lambda row: of(row) is None)
        case exp.NullSafeEQ():
            left, right, _ = _pair(expression, scope)
            return Scalar(BOOLEAN, lambda row: _same(left(row), right(row)))
        case exp.In() if expression.expressions and not expression.args.get("query"):
            return _any([_comparison(_equal(expression.this, one), scope).of for one in expression.expressions])
        case exp.Between():
            low, high = expression.args["low"].copy(), expression.args["high"].copy()
            least = exp.GTE(this=expression.this.copy(), expression=low)
            return scalar(exp.and_(least, exp.LTE(this=expression.this.copy(), expression=high)), scope)
    if type(expression) in _COMPARED:
        return _comparison(expression, scope)
    raise NotLocal(f"{type(expression).__name__} is for Spark to compute")


def _equal(one: exp.Expr, other: exp.Expr) -> exp.EQ:
    return exp.EQ(this=one.copy(), expression=other.copy())


def _same(one: Value, other: Value) -> bool:
    one, other = normal(one), normal(other)
    return one is other or one == other


def _comparison(expression: exp.Expr, scope: Scope) -> Scalar:
    left, right, ordered = _pair(expression, scope)
    if not ordered and not isinstance(expression, exp.EQ):
        raise NotLocal("an order of floating numbers")
    compared = _COMPARED[type(expression)] if ordered else _same

    def of(row: Row) -> Value:
        one, other = left(row), right(row)
        return None if one is None or other is None else compared(one, other)

    return Scalar(BOOLEAN, of)


def _pair(expression: exp.Expr, scope: Scope) -> tuple[Function, Function, bool]:
    """Two values of one kind, and whether Python orders them as Spark does."""
    left, right = scalar(expression.args["this"], scope), scalar(expression.args["expression"], scope)
    kind = widest(left.kind, right.kind)
    return left.of, right.of, kind.is_ordered or kind == NULL


def _truth(expression: exp.Expr, scope: Scope) -> Function:
    found = scalar(expression, scope)
    if found.kind not in (BOOLEAN, NULL):
        raise NotLocal("a condition that is none")
    return found.of


def _connected(expression: exp.And | exp.Or, scope: Scope) -> Scalar:
    """Three-valued: false decides AND, true decides OR."""
    parts = [_truth(part, scope) for part in expression.flatten()]
    return _any(parts, decides=isinstance(expression, exp.Or))


def _any(parts: Sequence[Function], *, decides: bool = True) -> Scalar:
    """The first part that decides does; otherwise it is null if one of them is."""

    def of(row: Row) -> Value:
        known = True
        for part in parts:
            value = part(row)
            if value is decides:
                return decides
            known = known and value is not None
        return not decides if known else None

    return Scalar(BOOLEAN, of)


# choices --------------------------------------------------------------------------------------------------------------


def _case(expression: exp.Case | exp.If, scope: Scope) -> Scalar:
    """Branches that Python cannot compute are left to Spark only if a row takes them."""
    whens = expression.args["ifs"] if isinstance(expression, exp.Case) else [expression]
    otherwise = expression.args.get("default" if isinstance(expression, exp.Case) else "false")
    subject = expression.this if isinstance(expression, exp.Case) else None
    tests = [_test(_equal(subject, w.this) if subject else w.this, scope) for w in whens]
    branches = [_branch(w.args["true"], scope) for w in whens] + [_branch(otherwise or exp.null(), scope)]
    kinds = [branch.kind for branch in branches]
    kind = UNKNOWN if UNKNOWN in kinds else widest(*kinds)
    chosen = [_as(branch, kind) for branch in branches]

    def of(row: Row) -> Value:
        for test, branch in zip(tests, chosen, strict=False):
            if test(row):
                return branch(row)
        return chosen[-1](row)

    return Scalar(kind, of)


def _test(expression: exp.Expr, scope: Scope) -> Function:
    """Computed once for each row, if the scope says so."""
    if scope.tests is None:
        return _truth(expression, scope)
    if expression not in scope.tests:
        scope.tests[expression] = _once(_truth(expression, scope))
    return scope.tests[expression]


def _once(function: Function) -> Function:
    """The same for a row that is asked about again at once; threads do not disturb one another."""
    last: tuple[Row | None, Value] = (None, None)

    def of(row: Row) -> Value:
        nonlocal last
        known = last
        if row is not known[0]:
            known = last = row, function(row)
        return known[1]

    return of


def _branch(expression: exp.Expr, scope: Scope) -> Scalar:
    try:
        return scalar(expression, scope)
    except NotLocal as why:
        reason = str(why)

    def of(_: Row) -> Value:
        raise NotLocal(reason)

    return Scalar(UNKNOWN, of)


def _as(branch: Scalar, kind: Kind) -> Function:
    """A value in a wider kind of numbers."""
    of = branch.of
    return (lambda row: _decimal(of(row))) if kind.name == "decimal" and branch.kind.is_whole else of


def _one_of(expression: exp.Expr, scope: Scope) -> Scalar:
    if isinstance(expression, exp.Nullif):
        equal = _equal(expression.this, expression.expression)
        return scalar(exp.Case(ifs=[exp.If(this=equal, true=exp.null())], default=expression.this.copy()), scope)
    given = [scalar(one, scope) for one in (expression.this, *expression.expressions)]
    kind = widest(*(one.kind for one in given))
    values = [_as(one, kind) for one in given]
    if isinstance(expression, exp.Coalesce):
        return Scalar(kind, lambda row: next((v for of in values if (v := of(row)) is not None), None))
    if not kind.is_ordered:
        raise NotLocal("an order of floating numbers")
    best = min if isinstance(expression, exp.Least) else max

    def extreme(row: Row) -> Value:
        there = [v for of in values if (v := of(row)) is not None]
        return best(there) if there else None

    return Scalar(kind, extreme)


# arithmetic -----------------------------------------------------------------------------------------------------------


def _arithmetic(expression: exp.Expr, scope: Scope) -> Scalar:
    if isinstance(expression, exp.Neg | exp.Abs):
        given = scalar(expression.this, scope)
        if not given.kind.is_exact:
            raise NotLocal("floating numbers")
        of, kind, change = given.of, given.kind, _absolute if isinstance(expression, exp.Abs) else _negative
        return Scalar(kind, lambda row: None if (v := of(row)) is None else kind.checked(change(v)))
    sides = expression.args["this"], expression.args["expression"]
    left, right = (_numbers(side, scope) for side in sides)
    if any(map(_is_suffixed, sides)) and "decimal" in (left.kind.name, right.kind.name):
        raise NotLocal("7L and CAST(7 AS BIGINT) are not the same beside a decimal, and look the same")
    if isinstance(expression, exp.Div):
        return _quotient(left, right)
    return _combined(type(expression), left, right)


def _negative(value: Value) -> Value:
    return value.copy_negate() if isinstance(value, Decimal) else -value  # type: ignore[operator]


def _absolute(value: Value) -> Value:
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)  # type: ignore[arg-type]


def _numbers(expression: exp.Expr, scope: Scope) -> Scalar:
    """A number; a whole one that is written out has as many digits as it has."""
    found = scalar(expression, scope)
    inner = expression.unnest()
    inner = inner.this if isinstance(inner, exp.Neg) else inner  # -7 is written out, -(7) is not
    if isinstance(inner, exp.Literal) and found.kind.is_whole:
        return Scalar(Kind(found.kind.name, len(str(inner.this).lstrip("0")) or 1), found.of)
    return found


def _plain(kind: Kind) -> Kind:
    return Kind(kind.name) if kind.is_whole else kind


def _is_suffixed(expression: exp.Expr) -> bool:
    inner = expression.unnest()
    inner = inner.this.unnest() if isinstance(inner, exp.Neg) else inner
    return isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal)


_WHOLE: dict[type[exp.Expr], Callable[[Any, Any], int]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
}
_EXACT: dict[type[exp.Expr], Callable[[Any, Any], Decimal]] = {
    exp.Add: EXACT.add,
    exp.Sub: EXACT.subtract,
    exp.Mul: EXACT.multiply,
}


def _combined(operator: type[exp.Expr], left: Scalar, right: Scalar) -> Scalar:
    if not (left.kind.is_exact and right.kind.is_exact):
        raise NotLocal("arithmetic of other than exact numbers")
    if left.kind.is_whole and right.kind.is_whole:
        kind = max(_plain(left.kind), _plain(right.kind), key=lambda k: WIDTHS[k.name])
        whole = _WHOLE[operator]
        return _over_both(kind, left.of, right.of, lambda a, b: kind.checked(whole(a, b)))
    one, other = _beside_decimal(left.kind), _beside_decimal(right.kind)
    exact, kind = _EXACT[operator], _product(one, other) if operator is exp.Mul else _sum(one, other)
    return _over_both(kind, left.of, right.of, lambda a, b: kind.checked(exact(_decimal(a), _decimal(b))))


def _beside_decimal(kind: Kind) -> Kind:
    """A number that is written out counts with the digits that it has."""
    return Kind("decimal", kind.precision, 0) if kind.is_whole and kind.precision else kind.as_decimal()


def _sum(one: Kind, other: Kind) -> Kind:
    scale = max(one.scale, other.scale)
    return adjusted(max(one.precision - one.scale, other.precision - other.scale) + scale + 1, scale)


def _product(one: Kind, other: Kind) -> Kind:
    return adjusted(one.precision + other.precision + 1, one.scale + other.scale)


def _quotient(left: Scalar, right: Scalar) -> Scalar:
    """Of a double and a number: what decimals would be rounded to, Spark knows."""
    if left.kind != DOUBLE or not (right.kind.is_whole or right.kind == DOUBLE):
        raise NotLocal("a quotient that is rounded")

    def divided(a: Value, b: Value) -> Value:
        if not b:
            raise NotLocal("a division by nothing")
        return float(a) / float(b)  # type: ignore[arg-type]

    return _over_both(DOUBLE, left.of, right.of, divided)


def _over_both(kind: Kind, left: Function, right: Function, made: Callable[[Value, Value], Value]) -> Scalar:
    """Null if either is."""

    def of(row: Row) -> Value:
        one, other = left(row), right(row)
        return None if one is None or other is None else made(one, other)

    return Scalar(kind, of)
