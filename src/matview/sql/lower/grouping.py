"""GROUP BY, ROLLUP, CUBE, GROUPING SETS and aggregates: groups by plain columns, expressions over them above."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from matview.algebra.nodes import Aggregate, Join, Node, Outer, Project, Values
from matview.algebra.scalars import column, columns_in, conjunction, number, same, substituted
from matview.algebra.schema import Field
from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import (
    NoSettledForm,
    Settled,
    Shown,
    called,
    is_aggregate,
    is_aggregate_function,
    own_nodes,
    settled,
)
from matview.sql.lower.groups import Keys
from matview.sql.lower.scope import Scope


@dataclass(frozen=True)
class Grouped:
    """The groups, expressions over them, and the value of each aggregate over no rows."""

    scope: Scope
    parts: tuple[exp.Expr, ...]
    over_nothing: Mapping[str, exp.Expr | None] = field(default_factory=dict)


def aggregated(ctx: Context, scope: Scope, keys: Keys, parts: Sequence[exp.Expr]) -> Grouped:
    """Groups the relation and states `parts` over the groups. Subqueries in aggregates and keys are gone by now."""
    scope, columns = _keyed(ctx, scope, keys)
    grouping: dict[exp.Expr, exp.Expr] = {}
    if keys.sets is not None:
        scope, columns, grouping = _in_sets(ctx, scope, keys, columns)
    calls = _calls(ctx, parts)
    named = tuple((ctx.names.fresh(_label(s.call)), s) for s in calls.values())
    values = {call: column(name) for call, (name, _) in zip(calls, named, strict=True)}
    by = tuple(dict.fromkeys((*scope.carried, *columns.values(), *_ids(grouping))))
    made_of = tuple((name, s.call) for name, s in named)
    groups = Aggregate(scope.node, by, made_of if by or made_of else _something(ctx))
    node = in_one_form(groups, {name: s.shown for name, s in named})
    swaps = {**values, **grouping, **{key: column(name) for key, name in columns.items()}}
    made = tuple(_over_groups(ctx, part, swaps, scope.carried) for part in parts)
    own = scope.own.renamed({key.name: name for key, name in columns.items() if isinstance(key, exp.Column)})
    over_nothing = {name: s.over_nothing for name, s in named}
    grouped = scope.with_node(node).with_own(own)
    if scope.carried and not keys.values and keys.sets is None:
        grouped = _even_over_nothing(ctx, grouped, over_nothing, calls)
    return Grouped(grouped, made, over_nothing)


def _something(ctx: Context) -> tuple[tuple[str, exp.Expr], ...]:
    """One group of which nothing is asked still is one row."""
    return ((ctx.names.fresh("count"), exp.Count(this=exp.Star(), big_int=True)),)


def _label(call: exp.Expr) -> str:
    function = next((n for n in call.walk() if is_aggregate_function(n)), call)
    if isinstance(function, exp.Anonymous):
        return function.name.lower()
    return function.sql_name().lower() if isinstance(function, exp.Func) else "aggregate"


# keys -----------------------------------------------------------------------------------------------------------------


def _keyed(ctx: Context, scope: Scope, keys: Keys) -> tuple[Scope, dict[exp.Expr, str]]:
    """Every key as a column: those that are none are computed first."""
    columns: dict[exp.Expr, str] = {}
    made: list[tuple[str, exp.Expr]] = []
    for key in keys.values:
        if isinstance(key, exp.Column):
            columns[key] = key.name
        elif key not in columns:
            columns[key] = ctx.names.fresh("key")
            made.append((columns[key], key))
    return scope.with_node(wider(scope.node, made)), columns


def wider(node: Node, made: Sequence[tuple[str, exp.Expr]]) -> Node:
    """The relation with more columns."""
    if not made:
        return node
    return Project(node, (*((name, column(name)) for name in node.names), *made))


def in_one_form(node: Node, shown: Mapping[str, Shown]) -> Node:
    """The relation with the values of these columns as they are shown, from here on: whoever computes a row again, to
    take it away from what there is, must come to the very same one."""
    forms = {name: form for name, form in shown.items() if form is not None}
    if not forms:
        return node
    made = ((name, forms[name](column(name)) if name in forms else column(name)) for name in node.names)
    return Project(node, tuple(made))


def _in_sets(
    ctx: Context, scope: Scope, keys: Keys, columns: Mapping[exp.Expr, str]
) -> tuple[Scope, dict[exp.Expr, str], dict[exp.Expr, exp.Expr]]:
    """Every row once per grouping set, keys outside the set null: one GROUP BY does them all."""
    assert keys.sets is not None
    number_of, id_of = ctx.names.fresh("grouping set"), ctx.names.fresh("grouping id")
    fields = (Field(number_of, "int", nullable=False), Field(id_of, "bigint", nullable=False))
    order = list(columns)
    ids = [_grouping_id(order, chosen) for chosen in keys.sets]
    sets = Values(fields, tuple((number(i), exp.cast(number(d), "bigint")) for i, d in enumerate(ids)))
    fresh = {key: ctx.names.fresh(name) for key, name in columns.items()}
    has = {key: _among(number_of, [i for i, s in enumerate(keys.sets) if key in s]) for key in order}
    nulled = [(fresh[key], exp.Case(ifs=[exp.If(this=has[key], true=column(columns[key]))])) for key in order]
    grouping: dict[exp.Expr, exp.Expr] = {exp.Grouping(expressions=[key.copy()]): _bit(has[key]) for key in order}
    for spelled in ([], order):
        grouping[exp.GroupingId(expressions=[key.copy() for key in spelled])] = column(id_of)
    grouping[column(number_of)] = column(number_of)
    node = wider(Join((scope.node, sets)), nulled)
    return scope.with_node(node), fresh, grouping


def _grouping_id(order: Sequence[exp.Expr], chosen: Sequence[exp.Expr]) -> int:
    """A bit for every key, the first one highest, set where the key is not grouped by."""
    return sum(1 << i for i, key in enumerate(reversed(order)) if key not in chosen)


def _among(name: str, numbers: Sequence[int]) -> exp.Expr:
    return exp.In(this=column(name), expressions=[number(i) for i in numbers]) if numbers else exp.false()


def _bit(grouped: exp.Expr) -> exp.Expr:
    bit = exp.Case(ifs=[exp.If(this=grouped.copy(), true=number(0))], default=number(1))
    return exp.cast(bit, "tinyint", dialect="spark")


def _ids(grouping: Mapping[exp.Expr, exp.Expr]) -> Iterator[str]:
    """The columns that tell grouping sets apart."""
    for value in grouping.values():
        yield from columns_in(value)


# aggregates -----------------------------------------------------------------------------------------------------------


def _calls(ctx: Context, parts: Sequence[exp.Expr]) -> dict[exp.Expr, Settled]:
    """Each distinct aggregate call of the expressions."""
    calls: dict[exp.Expr, Settled] = {}
    for part in parts:
        for node in outermost(part, is_aggregate):
            if node not in calls:
                calls[node] = _settled(ctx, node)
    return calls


def outermost(expression: exp.Expr, wanted: Callable[[exp.Expr], bool]) -> Iterator[exp.Expr]:
    """The nodes wanted that stand in no other such node, nor in a subquery."""
    for node in expression.walk(prune=lambda n: isinstance(n, exp.Query) or wanted(n)):
        if wanted(node) and not isinstance(node, exp.Query):
            yield node


def _settled(ctx: Context, node: exp.Expr) -> Settled:
    if sum(is_aggregate_function(n) for n in own_nodes(node)) > 1:
        raise ctx.bad("an aggregate stands inside another", node, "aggregate in a query in FROM first")
    try:
        return settled(node)
    except NoSettledForm as reason:
        raise ctx.refused(
            f"`{shown(node)}` {reason}", node, "order it WITHIN GROUP, or use an exact function"
        ) from None


def _over_groups(ctx: Context, part: exp.Expr, swaps: Mapping[exp.Expr, exp.Expr], carried: Sequence[str]) -> exp.Expr:
    """An expression over groups: keys and aggregates by their columns, nothing else of the input."""

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node.copy()
        if node in swaps and not _is_window_call(node):
            return swaps[node].copy()
        if isinstance(node, exp.Grouping | exp.GroupingId):
            raise ctx.bad(f"`{shown(node)}` does not name the columns of the grouping sets", node, "name all of them")
        if isinstance(node, exp.Column) and node.name not in carried:
            raise ctx.bad(
                f"`{node.name}` is neither grouped by nor aggregated",
                node,
                "add it to GROUP BY, or take any_value() of it",
            )
        return node

    return part.transform(swap)


def _is_window_call(node: exp.Expr) -> bool:
    """Whether the node is the function of OVER: the same text elsewhere may be an aggregate."""
    return is_aggregate_function(called(node)) and not is_aggregate(node)


def _even_over_nothing(
    ctx: Context, scope: Scope, over_nothing: Mapping[str, exp.Expr | None], calls: Mapping[exp.Expr, Settled]
) -> Scope:
    """One group for every row asked for, even if nothing stands in it."""
    assert scope.given is not None
    for (name, value), call in zip(over_nothing.items(), calls, strict=True):
        if value is None:
            raise ctx.refused(f"`{shown(call)}` in a correlated subquery: what it is over no rows ({name})", call)
    fresh = {name: ctx.names.fresh(name) for name in (*scope.carried, *over_nothing)}
    groups = Project(scope.node, tuple((new, column(old)) for old, new in fresh.items()))
    on = conjunction(*(same(column(name), column(fresh[name])) for name in scope.carried))
    joined = Outer("left", scope.given.named(scope.carried), groups, on)
    kept = tuple((name, column(name)) for name in scope.carried)
    values = tuple((name, with_default(column(fresh[name]), value)) for name, value in over_nothing.items())
    return scope.with_node(Project(joined, (*kept, *values)))


def with_default(value: exp.Expr, default: exp.Expr | None) -> exp.Expr:
    """An aggregate's value where its group may be missing."""
    if default is None or isinstance(default, exp.Null):
        return value
    return exp.Coalesce(this=value, expressions=[default.copy()])


def over_missing_groups(grouped: Grouped, part: exp.Expr) -> exp.Expr:
    """The expression for a row whose group may not be there at all."""
    values = {name: with_default(column(name), value) for name, value in grouped.over_nothing.items()}
    return substituted(part, values)
