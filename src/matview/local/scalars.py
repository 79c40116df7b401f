"""Scalar expressions as functions of rows, a column at a time: those that Arrow computes as Spark does, under its ANSI
rules.

What could overflow, round or fail raises NotLocal when it would, so that Spark does it, or says why not.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, reduce

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from matview.local.batch import Batch, Datum, Function, kernel, whole
from matview.local.kinds import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    UNKNOWN,
    WIDTHS,
    Kind,
    NotLocal,
    adjusted,
    arrow_of,
    kind_of,
    widest,
)

Name = tuple[str, ...]
"""A column's name, and before it that of its relation, where there is one."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """What an expression is of rows; `constant` if it is the same of all of them, and known."""

    kind: Kind
    of: Function
    constant: pa.Scalar | None = None

    @classmethod
    def always(cls, kind: Kind, value: pa.Scalar) -> Scalar:
        return cls(kind, lambda _: value, value)

    @classmethod
    def written(cls, kind: Kind, value: object) -> Scalar:
        return cls.always(kind, pa.scalar(value, arrow_of(kind)))

    def rows(self, batch: Batch) -> pa.Array:
        """A value for each row."""
        return whole(self.of(batch), batch.size)

    def held_as(self, kind: Kind) -> Scalar:
        """The same in a kind that has all its values, or says so when it has not."""
        if kind in (self.kind, UNKNOWN):
            return self
        to = arrow_of(kind)
        if self.constant is not None:
            return Scalar.always(kind, converted(self.constant, to))
        of = self.of
        return Scalar(kind, lambda batch: converted(of(batch), to))


@dataclass(frozen=True, slots=True)
class Scope:
    """Where the columns are in a batch, and of which kind they are.

    `tests` has the conditions of CASE that were met so far, where many expressions of one batch have them in common.
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
        return Scalar(kind, lambda batch: batch.column(place))


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
            return Scalar.written(NULL, None)
        case exp.Boolean():
            return Scalar.written(BOOLEAN, bool(expression.this))
        case exp.Literal(this=text) if expression.is_string:
            return Scalar.written(STRING, str(text))
    return _number(str(expression.this))


def _number(text: str, sign: int = 1) -> Scalar:
    """A number that is written out, with its sign."""
    if text.isdigit():
        value = sign * int(text)
        if not -(1 << 63) <= value < 1 << 63:
            raise NotLocal("a number of many digits")
        return Scalar.written(INT if -(1 << 31) <= value < 1 << 31 else BIGINT, value)
    if set(text) <= set("0123456789."):
        scale = len(text.partition(".")[2])
        digits = max(scale, len(text.replace(".", "").lstrip("0")), 1)
        return Scalar.written(Kind("decimal", digits, scale), Decimal(text if sign > 0 else f"-{text}"))
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
    if not _is_converted(given.kind, target):
        raise NotLocal(f"a cast of {given.kind.name} to {target.name}")
    return given.held_as(target)


def _date(text: str) -> Scalar:
    """One that is written in full: Python takes other spellings than Spark does."""
    try:
        if _DATE.fullmatch(text):
            return Scalar.written(DATE, dt.date.fromisoformat(text))
    except ValueError:
        pass  # no such day
    raise NotLocal(f"the date {text}")


def _is_converted(given: Kind, target: Kind) -> bool:
    """Whether a cast leaves values as they are, or says that it cannot."""
    if given in (target, NULL):
        return True
    if target.is_whole or target == DOUBLE:
        return given.is_whole
    return target.name == "decimal" and given.is_exact and given.scale <= target.scale


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


def converted(datum: Datum, to: pa.DataType) -> Datum:
    """The same values in another type; NotLocal if it has not all of them."""
    if datum.type == to:
        return datum
    digits = _digits(datum.type)
    if digits is not None and pa.types.is_decimal(to) and to.precision - to.scale < digits:
        datum = kernel("cast", datum, options=pc.CastOptions.safe(pa.decimal256(digits + to.scale, to.scale)))
    return kernel("cast", datum, options=pc.CastOptions.safe(to))


def _digits(kind: pa.DataType) -> int | None:
    """How many a number has before the point. A decimal of fewer is made by way of one that has room for all: Arrow
    asks for that of whole numbers, and for decimals does not notice in every case that it has run out of bits."""
    if pa.types.is_decimal(kind):
        return int(kind.precision - kind.scale)
    return _MOST_DIGITS.get(kind)


# conditions -----------------------------------------------------------------------------------------------------------

_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
}
_NEITHER = pa.scalar(None, pa.bool_())
_FALSE, _ZERO = pa.scalar(False), pa.scalar(0.0)


def _condition(expression: exp.Expr, scope: Scope) -> Scalar:
    match expression:
        case exp.And() | exp.Or():
            return _connected(expression, scope)
        case exp.Not():
            inner = _truth(expression.this, scope)
            return Scalar(BOOLEAN, lambda batch: kernel("invert", inner(batch)))
        case exp.Is() if isinstance(expression.expression, exp.Null):
            of = scalar(expression.this, scope).of
            return Scalar(BOOLEAN, lambda batch: kernel("is_null", of(batch)))
        case exp.NullSafeEQ():
            left, right, kind = _pair(expression, scope)
            return Scalar(BOOLEAN, lambda batch: _same(left(batch), right(batch), kind))
        case exp.In() if expression.expressions and not expression.args.get("query"):
            return _listed(expression, scope)
        case exp.Between():
            low, high = expression.args["low"].copy(), expression.args["high"].copy()
            least = exp.GTE(this=expression.this.copy(), expression=low)
            return scalar(exp.and_(least, exp.LTE(this=expression.this.copy(), expression=high)), scope)
    if type(expression) in _COMPARED:
        return _comparison(expression, scope)
    raise NotLocal(f"{type(expression).__name__} is for Spark to compute")


def _listed(expression: exp.In, scope: Scope) -> Scalar:
    """Constants are looked up among one another; other values are compared one by one."""
    given, listed = scalar(expression.this, scope), [scalar(one, scope) for one in expression.expressions]
    kind = widest(given.kind, *(one.kind for one in listed))
    constants = [one.held_as(kind).constant for one in listed if one.constant is not None]
    if len(constants) < len(listed) or not kind.is_ordered:
        return _any([_comparison(_equal(expression.this, one), scope).of for one in expression.expressions])
    there = [constant for constant in constants if constant is not None and constant.is_valid]
    values = pa.concat_arrays([pa.array([], arrow_of(kind)), *(pa.repeat(constant, 1) for constant in there)])
    of, is_sure = given.held_as(kind).of, len(there) == len(listed)

    def found(batch: Batch) -> Datum:
        """Not among them is false; it is unknown if a null is among them, and so is whether a null is."""
        held = whole(of(batch), batch.size)
        among = kernel("is_in", held, options=pc.SetLookupOptions(values))
        known = kernel("is_valid", held) if is_sure else among
        return kernel("if_else", known, among, _NEITHER)

    return Scalar(BOOLEAN, found)


def _equal(one: exp.Expr, other: exp.Expr) -> exp.EQ:
    return exp.EQ(this=one.copy(), expression=other.copy())


def _comparison(expression: exp.Expr, scope: Scope) -> Scalar:
    left, right, kind = _pair(expression, scope)
    name = _COMPARED[type(expression)]
    if kind == NULL:
        return Scalar.always(BOOLEAN, _NEITHER)
    if kind.is_ordered:
        return Scalar(BOOLEAN, lambda batch: kernel(name, left(batch), right(batch)))
    if not isinstance(expression, exp.EQ):
        raise NotLocal("an order of floating numbers")
    return Scalar(BOOLEAN, lambda batch: equal(left(batch), right(batch), kind))


def equal(one: Datum, other: Datum, kind: Kind) -> Datum:
    """Numbers that are none are alike."""
    found = kernel("equal", one, other)
    if not kind.is_floating:
        return found
    return kernel("or_kleene", found, kernel("and_kleene", kernel("is_nan", one), kernel("is_nan", other)))


def _same(one: Datum, other: Datum, kind: Kind) -> Datum:
    """Equal, or both null."""
    nulls = kernel("and", kernel("is_null", one), kernel("is_null", other))
    return nulls if kind == NULL else kernel("or", nulls, kernel("coalesce", equal(one, other, kind), _FALSE))


def same(one: pa.Array, other: pa.Array, kind: Kind) -> pa.Array:
    """Which rows have the same on either side: equal, or both null."""
    return whole(_same(one, other, kind), len(one))


def _pair(expression: exp.Expr, scope: Scope) -> tuple[Function, Function, Kind]:
    """Two values of one kind."""
    left, right = scalar(expression.args["this"], scope), scalar(expression.args["expression"], scope)
    kind = widest(left.kind, right.kind)
    return left.held_as(kind).of, right.held_as(kind).of, kind


def condition_of(expression: exp.Expr, scope: Scope) -> Scalar:
    """As `scalar`, of what is true, false or unknown."""
    found = scalar(expression, scope)
    if found.kind not in (BOOLEAN, NULL):
        raise NotLocal("a condition that is none")
    return found.held_as(BOOLEAN)


def _truth(expression: exp.Expr, scope: Scope) -> Function:
    return condition_of(expression, scope).of


def _connected(expression: exp.And | exp.Or, scope: Scope) -> Scalar:
    """Three-valued: false decides AND, true decides OR."""
    parts = [_truth(part, scope) for part in expression.flatten()]
    return _any(parts, "or_kleene" if isinstance(expression, exp.Or) else "and_kleene")


def _any(parts: Sequence[Function], name: str = "or_kleene") -> Scalar:
    return Scalar(BOOLEAN, lambda batch: reduce(lambda a, b: kernel(name, a, b), [part(batch) for part in parts]))


# choices --------------------------------------------------------------------------------------------------------------


def _case(expression: exp.Case | exp.If, scope: Scope) -> Scalar:
    """Branches that are not computed here are left to Spark only if a row takes them."""
    whens = expression.args["ifs"] if isinstance(expression, exp.Case) else [expression]
    otherwise = expression.args.get("default" if isinstance(expression, exp.Case) else "false")
    subject = expression.this if isinstance(expression, exp.Case) else None
    tests = [_test(_equal(subject, w.this) if subject else w.this, scope) for w in whens]
    branches = [_branch(w.args["true"], scope) for w in whens] + [_branch(otherwise or exp.null(), scope)]
    kinds = [branch.kind for branch in branches]
    kind = UNKNOWN if UNKNOWN in kinds else widest(*kinds)
    chosen = [branch.held_as(kind).of for branch in branches]

    def of(batch: Batch, place: int = 0) -> Datum:
        if place == len(tests):
            return chosen[-1](batch)
        parted = batch.parted(tests[place])
        if parted.no is None:
            return chosen[place](batch)
        if parted.yes is None:
            return of(batch, place + 1)
        yes, no = whole(chosen[place](parted.yes), parted.yes.size), whole(of(parted.no, place + 1), parted.no.size)
        if yes.type != no.type:
            raise NotLocal("branches of types that are not known")
        return pa.concat_arrays([yes, no]).take(parted.order)

    return Scalar(kind, of)


def _test(expression: exp.Expr, scope: Scope) -> Function:
    """The same function for the same condition, if the scope says so: rows are parted by it once."""
    if scope.tests is None:
        return _truth(expression, scope)
    if expression not in scope.tests:
        scope.tests[expression] = _truth(expression, scope)
    return scope.tests[expression]


def _branch(expression: exp.Expr, scope: Scope) -> Scalar:
    try:
        return scalar(expression, scope)
    except NotLocal as why:
        reason = str(why)

    def of(batch: Batch) -> Datum:
        if batch.size:
            raise NotLocal(reason)
        return pa.nulls(0)

    return Scalar(UNKNOWN, of)


def _one_of(expression: exp.Expr, scope: Scope) -> Scalar:
    if isinstance(expression, exp.Nullif):
        met = _equal(expression.this, expression.expression)
        return scalar(exp.Case(ifs=[exp.If(this=met, true=exp.null())], default=expression.this.copy()), scope)
    given = [scalar(one, scope) for one in (expression.this, *expression.expressions)]
    kind = widest(*(one.kind for one in given))
    values = [one.held_as(kind).of for one in given]
    if isinstance(expression, exp.Coalesce):
        return Scalar(kind, lambda batch: kernel("coalesce", *(of(batch) for of in values)))
    if not kind.is_ordered:
        raise NotLocal("an order of floating numbers")
    name = "min_element_wise" if isinstance(expression, exp.Least) else "max_element_wise"
    options = pc.ElementWiseAggregateOptions(skip_nulls=True)
    return Scalar(kind, lambda batch: kernel(name, *(of(batch) for of in values), options=options))


# arithmetic -----------------------------------------------------------------------------------------------------------


def _arithmetic(expression: exp.Expr, scope: Scope) -> Scalar:
    if isinstance(expression, exp.Neg | exp.Abs):
        given = scalar(expression.this, scope)
        if not given.kind.is_exact:
            raise NotLocal("floating numbers")
        of, name = given.of, "abs_checked" if isinstance(expression, exp.Abs) else "negate_checked"
        return Scalar(given.kind, lambda batch: kernel(name, of(batch)))
    sides = expression.args["this"], expression.args["expression"]
    left, right = (_numbers(side, scope) for side in sides)
    if any(map(_is_suffixed, sides)) and "decimal" in (left.kind.name, right.kind.name):
        raise NotLocal("7L and CAST(7 AS BIGINT) are not the same beside a decimal, and look the same")
    if isinstance(expression, exp.Div):
        return _quotient(left, right)
    return _combined(type(expression), left, right)


def _numbers(expression: exp.Expr, scope: Scope) -> Scalar:
    """A number; a whole one that is written out has as many digits as it has."""
    found = scalar(expression, scope)
    inner = expression.unnest()
    inner = inner.this if isinstance(inner, exp.Neg) else inner  # -7 is written out, -(7) is not
    if isinstance(inner, exp.Literal) and found.kind.is_whole:
        return Scalar(Kind(found.kind.name, len(str(inner.this).lstrip("0")) or 1), found.of, constant=found.constant)
    return found


def _plain(kind: Kind) -> Kind:
    return Kind(kind.name) if kind.is_whole else kind


def _is_suffixed(expression: exp.Expr) -> bool:
    inner = expression.unnest()
    inner = inner.this.unnest() if isinstance(inner, exp.Neg) else inner
    return isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal)


_CHECKED: dict[type[exp.Expr], str] = {exp.Add: "add_checked", exp.Sub: "subtract_checked", exp.Mul: "multiply_checked"}


def _combined(operator: type[exp.Expr], left: Scalar, right: Scalar) -> Scalar:
    if not (left.kind.is_exact and right.kind.is_exact):
        raise NotLocal("arithmetic of other than exact numbers")
    name = _CHECKED[operator]
    if left.kind.is_whole and right.kind.is_whole:
        kind = max(_plain(left.kind), _plain(right.kind), key=lambda k: WIDTHS[k.name])
        return _over_both(kind, left.held_as(kind), right.held_as(kind), name)
    one, other = _beside_decimal(left.kind), _beside_decimal(right.kind)
    kind = _product(one, other) if operator is exp.Mul else _sum(one, other)
    a, b = left.held_as(one), right.held_as(other)
    if one.precision + other.precision >= pa.decimal128(38).precision:  # Arrow has no room for what might come of them
        return _over_both(kind, _roomy(a), _roomy(b), name)
    return _over_both(kind, a, b, name)


def _roomy(given: Scalar) -> Scalar:
    of, kind = given.of, pa.decimal256(given.kind.precision, given.kind.scale)
    return Scalar(given.kind, lambda batch: converted(of(batch), kind))


def _over_both(kind: Kind, left: Scalar, right: Scalar, name: str) -> Scalar:
    one, other, to = left.of, right.of, arrow_of(kind)
    return Scalar(kind, lambda batch: converted(kernel(name, one(batch), other(batch)), to))


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
    upper, lower = left.of, right.held_as(DOUBLE).of

    def divided(batch: Batch) -> Datum:
        a, b = whole(upper(batch), batch.size), whole(lower(batch), batch.size)
        if pc.any(kernel("and_kleene", kernel("equal", b, _ZERO), kernel("is_valid", a))).as_py():
            raise NotLocal("a division by nothing")
        return kernel("divide", a, b)

    return Scalar(DOUBLE, divided)
