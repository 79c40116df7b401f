"""A SELECT, clause by clause: FROM, WHERE, GROUP BY, HAVING, windows, QUALIFY, the list, DISTINCT, LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from matview.algebra.nodes import Aggregate, Node, Project
from matview.algebra.scalars import column
from matview.sql.lower.attach import attached
from matview.sql.lower.checks import condition_of
from matview.sql.lower.context import Context, Lowered
from matview.sql.lower.functions import bare, has_aggregate, has_grouping, has_subquery, is_aggregate
from matview.sql.lower.grouping import aggregated, outermost
from matview.sql.lower.groups import NO_KEYS, Keys, group_keys
from matview.sql.lower.items import Item, aliases, select_items
from matview.sql.lower.joins import from_clause
from matview.sql.lower.ordering import Limit, explicit, limit_of, top
from matview.sql.lower.pulled import where_of
from matview.sql.lower.resolve import Find, in_scope, one_meaning, outputs_first, own_column, resolve
from matview.sql.lower.scope import Given, Scope
from matview.sql.lower.sources import with_ctes
from matview.sql.lower.windows import windowed, with_named_windows

_CLAUSES = (
    *("with_", "hint", "distinct", "expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify"),
    *("windows", "order", "limit", "offset", "sort", "cluster", "distribute"),
)


@dataclass(frozen=True)
class Clauses:
    """The expressions of a SELECT that stand above its grouping, all over the same relation."""

    items: tuple[Item, ...]
    order: tuple[exp.Ordered, ...] = ()
    having: exp.Expr | None = None
    qualify: exp.Expr | None = None

    def parts(self) -> Iterator[exp.Expr]:
        yield from (item.value for item in self.items)
        yield from (ordered.this for ordered in self.order)
        yield from (c for c in (self.having, self.qualify) if c is not None)

    def over(self, parts: Sequence[exp.Expr]) -> Clauses:
        """The same clauses with other expressions, in the order of `parts()`."""
        left = iter(parts)
        items = tuple(replace(item, value=next(left)) for item in self.items)
        order = tuple(explicit(ordered, next(left)) for ordered in self.order)
        having = None if self.having is None else next(left)
        return Clauses(items, order, having, None if self.qualify is None else next(left))


def lower_select(ctx: Context, select: exp.Select, given: Given | None, label: str) -> Lowered:
    ctx.allow(select, *_CLAUSES)
    ctx = with_ctes(ctx, select)
    select = _checked(ctx, with_named_windows(ctx, select))
    limit = limit_of(ctx, select)
    scope = from_clause(ctx, select, given)
    where = condition_of(ctx, where_of(select), in_scope(ctx, scope))
    scope = ctx.filter_rows(ctx, scope, where)
    scope, items = select_items(ctx, scope, select.expressions)
    keys = group_keys(ctx, scope, select, items)
    clauses = _clauses(ctx, scope, select, items, keys, limit)
    scope, clauses = _grouped(ctx, scope, clauses, keys)
    scope, clauses = _above(ctx, scope, clauses)
    return _projected(ctx, scope, clauses, select, limit, label)


def _checked(ctx: Context, select: exp.Select) -> exp.Select:
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise ctx.refused("DISTINCT ON has no rule", distinct, "use QUALIFY row_number() OVER (...) = 1")
    for part in ("sort", "cluster", "distribute"):
        if select.args.get(part) and (select.args.get("limit") or select.args.get("offset")):
            raise ctx.refused("LIMIT without ORDER BY over a partial order", select.args[part], "use ORDER BY")
    if not select.expressions:
        raise ctx.bad("SELECT has no columns", select, "name at least one")
    return select


# names ----------------------------------------------------------------------------------------------------------------


def _clauses(
    ctx: Context, scope: Scope, select: exp.Select, items: tuple[Item, ...], keys: Keys | None, limit: Limit | None
) -> Clauses:
    """HAVING, QUALIFY and ORDER BY may use the names of the SELECT list. An order without LIMIT is only checked.

    HAVING looks among the columns that are grouped by first, then in the list, as Spark does.
    """
    named, inside = aliases(items), in_scope(ctx, scope)
    first = outputs_first(ctx, scope, named)
    having, qualify = select.args.get("having"), select.args.get("qualify")
    order = tuple(_ordered(ctx, o, items, first, inside) for o in _order_items(select, items))
    return Clauses(
        items,
        order if limit is not None else (),
        None if having is None else resolve(ctx, having.this, _keys_first(ctx, scope, keys or NO_KEYS, first), inside),
        None if qualify is None else resolve(ctx, qualify.this, one_meaning(ctx, scope, named)),
    )


def _keys_first(ctx: Context, scope: Scope, keys: Keys, otherwise: Find) -> Find:
    """The columns that are grouped by, then whatever else."""

    def find(name: exp.Column) -> exp.Expr | None:
        own = own_column(ctx, scope, name)
        return own if own is not None and own in keys.values else otherwise(name)

    return find


def _order_items(select: exp.Select, items: Sequence[Item]) -> Sequence[exp.Ordered]:
    order = select.args.get("order")
    listed: Sequence[exp.Ordered] = order.expressions if order else []
    if len(listed) == 1 and isinstance(listed[0].this, exp.Var) and listed[0].this.name.upper() == "ALL":
        return [explicit(listed[0], exp.Literal.number(i + 1)) for i in range(len(items))]
    return listed


def _ordered(
    ctx: Context,
    ordered: exp.Ordered,
    items: Sequence[Item],
    first: Callable[[exp.Column], exp.Expr | None],
    inside: Callable[[exp.Column], exp.Expr | None],
) -> exp.Ordered:
    value = ordered.this
    if isinstance(value, exp.Literal) and value.is_int:
        return explicit(ordered, at_ordinal(ctx, value, [item.value for item in items]))
    return explicit(ordered, bare(resolve(ctx, value, first, inside)))


def at_ordinal(ctx: Context, value: exp.Expr, values: Sequence[exp.Expr]) -> exp.Expr:
    if not 1 <= int(value.name) <= len(values):
        raise ctx.bad(f"there is no column {value.name} to order by", value, "count from 1")
    return values[int(value.name) - 1]


# above FROM and WHERE -------------------------------------------------------------------------------------------------


def _grouped(ctx: Context, scope: Scope, clauses: Clauses, keys: Keys | None) -> tuple[Scope, Clauses]:
    """Groups, if there is anything to group for."""
    asked = any(has_aggregate(part) or has_grouping(part) for part in clauses.parts())
    if keys is None and clauses.having is None and not asked:
        return scope, clauses
    scope, keys, parts = _without_subqueries(ctx, scope, keys or NO_KEYS, list(clauses.parts()))
    grouped = aggregated(ctx, scope, keys, parts)
    return grouped.scope, clauses.over(grouped.parts)


def _without_subqueries(
    ctx: Context, scope: Scope, keys: Keys, parts: list[exp.Expr]
) -> tuple[Scope, Keys, list[exp.Expr]]:
    """Subqueries inside keys and aggregates belong to the rows, not to the groups."""
    values: dict[exp.Expr, exp.Expr] = {}
    inside = [call for part in parts for call in outermost(part, is_aggregate)]
    for wanted in (*keys.values, *inside):
        if has_subquery(wanted) and wanted not in values:
            scope, values[wanted] = attached(ctx, scope, wanted)
    if not values:
        return scope, keys, parts

    def swap(node: exp.Expr) -> exp.Expr:
        return values[node].copy() if node in values else node

    if any(key in values for key in keys.values) and keys.sets is not None:
        raise ctx.refused("a subquery in a grouping set has no rule", keys.values[0], "compute it in a query in FROM")
    made = tuple(dict.fromkeys(values.get(key, key) for key in keys.values))
    return scope, Keys(made, keys.sets), [part.transform(swap) for part in parts]


def _above(ctx: Context, scope: Scope, clauses: Clauses) -> tuple[Scope, Clauses]:
    """HAVING, subqueries in the list, windows, QUALIFY."""
    if clauses.having is not None:
        scope = ctx.filter_rows(ctx, scope, clauses.having)
        clauses = replace(clauses, having=None)
    values: dict[exp.Expr, exp.Expr] = {}  # an ORDER BY item is often a column of the list
    for part in map(bare, clauses.parts()):
        if has_subquery(part) and part not in values:
            scope, values[part] = attached(ctx, scope, part)
    scope, over = windowed(ctx, scope, [values.get(bare(part), part) for part in clauses.parts()])
    clauses = clauses.over(over)
    if clauses.qualify is not None:
        scope = ctx.filter_rows(ctx, scope, clauses.qualify)
    return scope, clauses


# the result -----------------------------------------------------------------------------------------------------------


def _projected(
    ctx: Context, scope: Scope, clauses: Clauses, select: exp.Select, limit: Limit | None, label: str
) -> Lowered:
    items = clauses.items
    columns = ctx.names.prefixed(label, _told_apart([item.name for item in items]))
    outputs = list(zip(columns, (item.value for item in items), strict=True))
    order, more = _order_columns(ctx, clauses.order, outputs)
    if more and select.args.get("distinct"):
        raise ctx.bad("SELECT DISTINCT cannot be ordered by what it does not select", more[0][1], "select it as well")
    carried = [(name, column(name)) for name in scope.carried]
    node: Node = Project(scope.node, (*outputs, *more, *carried))
    if select.args.get("distinct"):
        node = Aggregate(node, node.names)
    if limit is not None:
        node = top(ctx, node, order, limit, scope.carried, select)
    if more:
        node = Project(node, tuple((name, column(name)) for name in (*columns, *scope.carried)))
    return Lowered(node, tuple(zip((item.name for item in items), columns, strict=True)), scope.carried)


def _told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Names for the relation's columns, where the user's own may repeat."""
    made: list[str] = []
    for name in names:
        count = sum(n.casefold() == name.casefold() for n in names[: len(made)])
        made.append(f"{name}#{count + 1}" if count else name)
    return tuple(made)


def _order_columns(
    ctx: Context, order: Sequence[exp.Ordered], outputs: Sequence[tuple[str, exp.Expr]]
) -> tuple[tuple[exp.Ordered, ...], list[tuple[str, exp.Expr]]]:
    """The order over the result's columns, and the columns that it needs beside them."""
    named = {bare(value): name for name, value in reversed(outputs)}
    more: list[tuple[str, exp.Expr]] = []
    made: list[exp.Ordered] = []
    for ordered in order:
        value = bare(ordered.this)
        if value not in named:
            named[value] = ctx.names.fresh("order")
            more.append((named[value], value))
        made.append(explicit(ordered, column(named[value])))
    return tuple(made), more
