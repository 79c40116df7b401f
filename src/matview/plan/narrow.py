"""Few changed rows meet few rows of the tables beside them: which ones, their values tell.

    dE join F on e = f    is    dE join (F where f in the values that dE has in e) on e = f

The condition is what files, row groups and pages of F are skipped by. It never changes an answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache

from sqlglot import exp

from matview.algebra.nodes import (
    Change,
    Filter,
    Join,
    Node,
    Outer,
    Scan,
    Semi,
    Stored,
    rebuilt,
)
from matview.algebra.origins import origins
from matview.algebra.scalars import column, conjunction, conjuncts, number
from matview.versions.predicates import LONGEST_LIST, Kind, kind_of

Value = int | str | dt.date | None
Values = frozenset[Value]
Known = Callable[[Change | Stored, str], Values | None]
"""The values that a leaf has in a column, or some more; None if nobody knows."""

LISTED = {Kind.INTEGRAL, Kind.STRING, Kind.DATE}
"""Kinds of columns of which few values can be listed in a condition."""
_LONGEST_TEXT = 200


def narrowed(node: Node, known: Known) -> Node:
    """The same rows, with every table beside known rows reduced to what they can meet."""
    return _Narrowing(known).of(node)


class _Narrowing:
    """Each part is looked at once, in however many places it stands."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._done: dict[Node, Node] = {}
        self._values: dict[tuple[Node, str], Values | None] = {}

    def of(self, node: Node) -> Node:
        if node not in self._done:
            self._done[node] = self._beside(rebuilt(node, tuple(map(self.of, node.inputs))))
        return self._done[node]

    def _beside(self, node: Node) -> Node:
        match node:
            case Join(parts, on):
                return replace(node, parts=self._each_by_the_others(parts, on))
            case Semi(kind, left, right, on):
                pair = self._each_by_the_others((left, right), conjuncts(on))
                return replace(node, left=pair[0] if kind == "semi" else left, right=pair[1])
            case Outer("left", left, right, on):
                return replace(node, right=self._each_by_the_others((left, right), conjuncts(on))[1])
        return node

    def _each_by_the_others(self, parts: tuple[Node, ...], on: tuple[exp.Expr, ...]) -> tuple[Node, ...]:
        found = list(parts)
        for condition in on:
            if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
                continue
            one, other = condition.left.unnest(), condition.right.unnest()
            if not (isinstance(one, exp.Column) and isinstance(other, exp.Column)):
                continue
            nulls = isinstance(condition, exp.NullSafeEQ)
            for here, there in ((one.name, other.name), (other.name, one.name)):
                source = next(part for part in parts if here in part.names)
                target = next(i for i, part in enumerate(parts) if there in part.names)
                values = self._values_of(source, here)
                if values is not None and _kind(source, here) is _kind(parts[target], there):
                    found[target] = _reduced(found[target], there, values if nulls else values - {None})
        return tuple(found)

    def _values_of(self, node: Node, name: str) -> Values | None:
        """The values that a column can have, or some more; None if they cannot be told."""
        if (node, name) not in self._values:
            self._values[node, name] = self._values_found(node, name)
        return self._values[node, name]

    def _values_found(self, node: Node, name: str) -> Values | None:
        if isinstance(node, Change | Stored):
            return self._known(node, name) if _kind(node, name) in LISTED else None
        found = [self._values_of(node.inputs[place], source) for place, source in origins(node, name)]
        if not found or any(values is None for values in found):
            return None
        return frozenset[Value]().union(*(values for values in found if values is not None))


def _kind(node: Node, name: str) -> Kind | None:
    return kind_of(node.field(name).type)


def _reduced(node: Node, name: str, values: Values) -> Node:
    """The rows with one of the values in a column, and perhaps others: said as close to the tables as can be."""

    @cache
    def reduced(node: Node, name: str) -> Node:
        if isinstance(node, Scan | Stored):
            condition = among(name, values, _kind(node, name))
            return node if condition is None else Filter(node, condition)
        inputs = list(node.inputs)
        for place, source in origins(node, name):
            inputs[place] = reduced(inputs[place], source)
        return rebuilt(node, tuple(inputs))

    return reduced(node, name)


# as a condition -------------------------------------------------------------------------------------------------------


def among(name: str, values: Values, kind: Kind | None) -> exp.Expr | None:
    """A column of a kind has one of the values, or lies within their bounds; None if that cannot be said."""
    some: Sequence[Value] = sorted(value for value in values if value is not None)
    if kind not in LISTED or any(isinstance(value, str) and len(value) > _LONGEST_TEXT for value in some):
        return None
    condition = _listed(name, some) if len(some) <= LONGEST_LIST else _bounded(name, some)
    if None in values:
        return exp.or_(condition, exp.Is(this=column(name), expression=exp.null()))
    return condition


def _listed(name: str, values: Collection[Value]) -> exp.Expr:
    if not values:
        return exp.false()
    return exp.In(this=column(name), expressions=[_literal(value) for value in values])


def _bounded(name: str, values: Sequence[Value]) -> exp.Expr:
    return conjunction(
        exp.GTE(this=column(name), expression=_literal(values[0])),
        exp.LTE(this=column(name), expression=_literal(values[-1])),
    )


def _literal(value: Value) -> exp.Expr:
    match value:
        case int():
            return number(value)
        case dt.date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
    return exp.Literal.string(str(value))
