"""A summary: groups with aggregates, and beside them the state that lets a change be added without looking at the rest.

    count(*), count(x)     c             c + sum of weights (where x is not null)
    sum(x), avg(x)         s, c          s + sum of weight * x; null while c = 0; avg is s / c
    bool_and, bool_or      t, f          how many are true, how many are false
    min(x), max(x)         m             least, greatest: right as long as rows only come

Anything else has no state: the groups that a change meets are computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Aggregate, Node, Project
from matview.algebra.scalars import call, column, number, substituted
from matview.algebra.schema import Field
from matview.remembered import cached_property
from matview.versions.text import spark_text

Typing = Callable[[Node], tuple[Field, ...]]
"""What a node's columns really are; Spark knows."""

Method = Literal["add", "least", "greatest"]
INTEGERS = ("tinyint", "smallint", "int", "bigint")
WIDE = "decimal(20, 0)"
"""Holds every BIGINT, and leaves Spark room to add many of them."""


@dataclass(frozen=True)
class State:
    """A value per group: how it is computed from rows, what a change adds to it, and how both are put together."""

    column: str
    computed: exp.Expr
    gained: exp.Expr
    method: Method = "add"
    guard: str | None = None
    """The state that counts what this one adds up: while it is 0, this one is null."""
    kind: str | None = None
    """Its type, where a change is added up in one of more digits."""


@dataclass(frozen=True)
class Summary:
    """`outputs` are the columns that users see, over the fields of `aggregate`; `keys` where its keys are stored."""

    aggregate: Aggregate
    outputs: tuple[tuple[str, exp.Expr], ...]
    keys: tuple[str, ...]
    states: tuple[State, ...]
    values: tuple[tuple[str, exp.Expr], ...]
    """Each aggregate over the columns of states; none when some aggregate has no state."""
    total: str | None = None
    """The state that counts the rows of a group."""

    @property
    def method(self) -> Literal["additive", "growing", "affected"]:
        """Whether a change can be added: any, one of rows that come, or none."""
        if not self.values and self.aggregate.aggregates:
            return "affected"
        return "additive" if all(state.method == "add" for state in self.states) else "growing"

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """The stored columns that users do not see."""
        visible = {name for name, _ in self.outputs}
        stored = (*self.keys, *(state.column for state in self.states))
        return tuple(dict.fromkeys(name for name in stored if name not in visible))

    def computed(self, input: Node) -> Node:
        """All stored columns, from rows: over the whole input, a full computation."""
        aggregate = self.aggregate
        if self.method == "affected":
            inner: Node = Aggregate(input, aggregate.keys, aggregate.aggregates)
            made = dict(self.outputs)
        else:
            inner = Aggregate(input, aggregate.keys, tuple((s.column, s.computed) for s in self.states))
            made = {name: substituted(e, dict(self.values)) for name, e in self.outputs}
        stored = {**self._stored_keys(), **made}
        states = {s.column: column(s.column) for s in self.states}
        return Project(inner, tuple((name, stored.get(name, states.get(name, column(name)))) for name in self.stored))

    def gained(self, change: Node) -> Node:
        """What a change adds to each group's states, by stored key."""
        aggregate = self.aggregate
        inner = Aggregate(change, aggregate.keys, tuple((f"+{s.column}", s.gained) for s in self.states))
        return Project(
            inner, (*self._stored_keys().items(), *((s.column, column(f"+{s.column}")) for s in self.states))
        )

    @property
    def places(self) -> dict[str, exp.Expr]:
        """The stored column of each of the aggregate's keys."""
        return {key: column(place) for key, place in zip(self.aggregate.keys, self.keys, strict=False)}

    @cached_property
    def stored(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.outputs), *self.hidden)

    def _stored_keys(self) -> dict[str, exp.Expr]:
        """Where each key is stored, and from which field; a summary of everything has a key of one value."""
        if not self.aggregate.keys:
            return {self.keys[0]: number(0)}
        return dict(zip(self.keys, map(column, self.aggregate.keys), strict=True))


def summary_of(aggregate: Aggregate, outputs: Sequence[tuple[str, exp.Expr]], typing: Typing) -> Summary:
    """What to store for a view whose columns are `outputs` over an aggregate."""
    keys = _stored_keys(aggregate, outputs)
    types = _argument_types(aggregate, typing)
    results = {f.name: f for f in typing(aggregate)}
    slots = _Slots(aggregate, outputs)
    total = slots.count(None)
    values: dict[str, exp.Expr] = {}
    for name, made in aggregate.aggregates:
        value = _value(made, slots, types.get(name, ""), results[name])
        if value is None:
            return Summary(aggregate, tuple(outputs), keys, (), ())
        values[name] = value
    return Summary(aggregate, tuple(outputs), keys, slots.states, tuple(values.items()), total)


def _stored_keys(aggregate: Aggregate, outputs: Sequence[tuple[str, exp.Expr]]) -> tuple[str, ...]:
    """A key is stored in the column that shows it, or else in a hidden one."""
    if not aggregate.keys:
        return ("__key_0",)
    shown = {e.name: name for name, e in reversed(outputs) if isinstance(e, exp.Column)}
    return tuple(shown.get(key, f"__key_{i}") for i, key in enumerate(aggregate.keys))


def _argument_types(aggregate: Aggregate, typing: Typing) -> dict[str, str]:
    """The type of the argument of each aggregate that has just one."""
    arguments = {name: argument for name, made in aggregate.aggregates if (argument := _argument(made)) is not None}
    if not arguments:
        return {}
    return {f.name: f.type for f in typing(Project(aggregate.input, tuple(arguments.items())))}


def _argument(made: exp.Expr) -> exp.Expr | None:
    """What is aggregated, null where a FILTER leaves it out; None for count(*) and what is more than one thing."""
    inner = made.this if isinstance(made, exp.Filter) else made
    argument = inner.this
    if not isinstance(argument, exp.Expr) or isinstance(argument, exp.Star | exp.Distinct) or _several(inner):
        return None
    return _filtered(argument, made)


def _several(call: exp.Expr) -> bool:
    return bool(call.args.get("expressions"))


def _filtered(argument: exp.Expr, made: exp.Expr) -> exp.Expr:
    if not isinstance(made, exp.Filter):
        return argument
    condition = made.expression.this
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=argument.copy())])


@dataclass
class _Slots:
    """The states that are needed, each once; one that users see anyway is kept where they see it."""

    aggregate: Aggregate
    outputs: Sequence[tuple[str, exp.Expr]]
    _made: dict[tuple[str, str], State] = field(default_factory=dict)

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(self._made.values())

    def count(self, of: exp.Expr | None) -> str:
        """How many rows there are, or how many in which `of` is not null."""
        if of is None:
            return self._slot("count", None, exp.Count(this=exp.Star()), _sum(column(WEIGHT)))
        weight = exp.Case(ifs=[exp.If(this=_is_not_null(of), true=column(WEIGHT))], default=number(0))
        return self._slot("count", of, exp.Count(this=of.copy()), _sum(weight))

    def sum(self, of: exp.Expr, kind: str, guard: str) -> str:
        """What a change adds may be twice as large as any sum: that of BIGINT is added up in more digits."""
        exact = exp.cast(of, WIDE) if kind == "bigint" else of.copy()
        is_decimal = kind == "bigint" or kind.startswith("decimal")
        weight = exp.cast(column(WEIGHT), "decimal(9, 0)") if is_decimal else column(WEIGHT)
        product = exp.Mul(this=weight, expression=exp.paren(exact))
        return self._slot("sum", of, exp.Sum(this=of.copy()), _sum(product), guard=guard, kind=_sum_type(kind))

    def extreme(self, made: exp.Min | exp.Max, of: exp.Expr) -> str:
        method: Method = "least" if isinstance(made, exp.Min) else "greatest"
        taken = type(made)(this=of.copy())
        return self._slot(method, of, taken, taken.copy(), method=method)

    def _slot(
        self,
        what: str,
        of: exp.Expr | None,
        computed: exp.Expr,
        gained: exp.Expr,
        method: Method = "add",
        guard: str | None = None,
        kind: str | None = None,
    ) -> str:
        name = (what, "" if of is None else spark_text(of))
        if name not in self._made:
            place = self._shown(computed) or f"__state_{len(self._made)}"
            self._made[name] = State(place, computed, gained, method, guard, kind)
        return self._made[name].column

    def _shown(self, computed: exp.Expr) -> str | None:
        """The column in which users see just this."""
        named = {name for name, made in self.aggregate.aggregates if spark_text(made) == spark_text(computed)}
        taken = {state.column for state in self._made.values()}
        shown = (name for name, e in self.outputs if isinstance(e, exp.Column) and e.name in named)
        return next((name for name in shown if name not in taken), None)


def _value(made: exp.Expr, slots: _Slots, kind: str, result: Field) -> exp.Expr | None:
    """The aggregate over states; None if it has none."""
    inner = made.this if isinstance(made, exp.Filter) else made
    if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star | exp.Literal):
        of = None if inner is made else _filtered(number(1), made)
        return column(slots.count(of))
    of = _argument(made)
    if of is None:
        return None
    match inner:
        case exp.Count():
            return column(slots.count(of))
        case exp.CountIf():
            return column(slots.count(_when(of)))
        case exp.Sum() if _exact(kind):
            return column(slots.sum(of, kind, slots.count(of)))
        case exp.Avg() if _exact(kind):
            return _average(slots, of, kind, result)
        case exp.Min() | exp.Max() if kind and "<" not in kind:
            return column(slots.extreme(inner, of))
        case exp.LogicalAnd() | exp.LogicalOr():
            return _logical(inner, column(slots.count(_when(of))), column(slots.count(_when(exp.not_(of)))))
    return None


def _exact(kind: str) -> bool:
    """Sums of it do not depend on the order, and a weight times it, or what an update adds, loses no digit."""
    if kind in INTEGERS:
        return True
    precision, scale = _digits(kind)
    return 0 < precision <= 27 or (precision > 0 and scale <= 6)


def _sum_type(kind: str) -> str:
    """The type that Spark's sum has."""
    if kind in INTEGERS:
        return "bigint"
    precision, scale = _digits(kind)
    return f"decimal({min(precision + 10, 38)}, {scale})"


def _digits(kind: str) -> tuple[int, int]:
    """Precision and scale of a decimal type; of any other, zeros."""
    if not kind.startswith("decimal("):
        return 0, 0
    precision, scale = (int(part) for part in kind[len("decimal(") : -1].split(","))
    return precision, scale


def _average(slots: _Slots, of: exp.Expr, kind: str, result: Field) -> exp.Expr | None:
    """Sum by count as Spark's own avg divides them; None where no division of its gives the same digits."""
    count = slots.count(of)
    if kind == "bigint":  # avg adds what sum would overflow with
        total = column(slots.sum(exp.cast(of, WIDE), "decimal(20,0)", count))
    else:
        total = column(slots.sum(of, kind, count))
    if kind in INTEGERS:
        quotient = _by(exp.cast(total, "double"), count)
    else:
        precision, scale = _digits(kind)
        if precision > 24:
            return None
        quotient = _rounded_once(total, scale, count)
    return exp.cast(quotient, result.type, dialect="spark") if result.type else quotient


def _rounded_once(total: exp.Expr, scale: int, count: str) -> exp.Expr:
    """The quotient to `scale + 4` digits, which are those of avg, and no more: rounded twice, 0.45 would become 1.

    A decimal(34, s) by a BIGINT is one of s + 4 digits in Spark, but never of less than 6: short ones are shifted.
    """
    if scale >= 2:
        return _by(exp.cast(total, f"decimal(34, {scale})"), count)
    shifted = exp.Mul(this=total, expression=exp.cast(exp.Literal.number("0.01"), "decimal(2, 2)"))
    quotient = _by(exp.cast(shifted, f"decimal(34, {scale + 2})"), count)
    return exp.Mul(this=exp.paren(quotient), expression=number(100))


def _by(total: exp.Expr, count: str) -> exp.Expr:
    return exp.Div(this=total, expression=call("nullif", column(count), number(0)), typed=False, safe=False)


def _logical(made: exp.Expr, true: exp.Expr, false: exp.Expr) -> exp.Expr:
    """bool_and is false with one false; bool_or is true with one true; both are null over nothing but nulls."""
    first, then = (false, true) if isinstance(made, exp.LogicalAnd) else (true, false)
    met = exp.false() if isinstance(made, exp.LogicalAnd) else exp.true()
    other = exp.true() if isinstance(made, exp.LogicalAnd) else exp.false()
    return exp.Case(ifs=[exp.If(this=_positive(first), true=met), exp.If(this=_positive(then), true=other)])


def _positive(counted: exp.Expr) -> exp.Expr:
    return exp.GT(this=counted.copy(), expression=number(0))


def _when(condition: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=number(1))])


def _is_not_null(of: exp.Expr) -> exp.Expr:
    return exp.not_(exp.Is(this=exp.paren(of.copy()), expression=exp.null()))


def _sum(of: exp.Expr) -> exp.Expr:
    return exp.Sum(this=of)
