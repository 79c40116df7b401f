"""Window functions: one Window node for each set of partition columns, orders made total where ties would show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.keys import key_of
from matview.algebra.nodes import Window
from matview.algebra.scalars import column
from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import Shown, bare, called, is_window_only, own_nodes
from matview.sql.lower.grouping import in_one_form, outermost, wider
from matview.sql.lower.scope import Scope
from matview.sql.lower.settling import NoSettledWindow, settled_window


def with_named_windows(ctx: Context, select: exp.Select) -> exp.Select:
    """The SELECT with OVER w written out."""
    if not select.args.get("windows"):
        return select
    defined = {w.name.casefold(): w for w in select.args["windows"]}
    made = select.copy()
    made.set("windows", None)
    roots = [*made.expressions, *(made.args[part] for part in ("qualify", "order") if made.args.get(part))]
    for window in [n for root in roots for n in own_nodes(root) if isinstance(n, exp.Window)]:
        _write_out(ctx, window, defined)
    return made


def _write_out(ctx: Context, window: exp.Window, defined: Mapping[str, exp.Expr]) -> None:
    name = window.args.get("alias")
    if name is None:
        return
    base = defined.get(name.name.casefold())
    if base is None or base.args.get("alias") is not None:
        raise _no_window(ctx, name)
    for part in ("partition_by", "order", "spec"):
        value = base.args.get(part)
        if value and not window.args.get(part):
            window.set(part, [v.copy() for v in value] if isinstance(value, list) else value.copy())
    window.set("alias", None)


def _no_window(ctx: Context, name: exp.Expr) -> Exception:
    return ctx.bad(f"there is no window `{name.name}`", name, "define it with WINDOW name AS (...)")


def windowed(ctx: Context, scope: Scope, parts: Sequence[exp.Expr]) -> tuple[Scope, tuple[exp.Expr, ...]]:
    """The relation with the values of the window functions in `parts`, and the parts over those."""
    for part in parts:
        _require_over(ctx, part)
    calls = tuple(dict.fromkeys(w for part in parts for w in outermost(part, _is_window)))
    if not calls:
        return scope, tuple(parts)
    scope, columns = _partition_columns(ctx, scope, calls)
    swaps: dict[exp.Expr, exp.Expr] = {}
    for group in _groups(ctx, scope, calls, columns):
        functions = {call: _function(ctx, scope, call, columns) for call in group}
        by = next(iter(functions.values())).by
        together = {f.call: f for f in functions.values()}
        made = Window(scope.node, _in_order(scope, by), tuple((f.name, c) for c, f in together.items()))
        scope = scope.with_node(in_one_form(made, {f.name: f.shown for f in together.values()}))
        swaps |= {call: column(together[f.call].name) for call, f in functions.items()}
    return scope, tuple(_over_columns(part, swaps) for part in parts)


def _groups(
    ctx: Context, scope: Scope, calls: Sequence[exp.Expr], columns: Mapping[exp.Expr, str]
) -> list[list[exp.Expr]]:
    """The functions of the same partitions go together, but for those that tell equal rows apart, each in an order of
    its own: which of them is which has to be one answer for all functions, so each looks at what those before it said.
    """
    has_key = key_of(scope.node) is not None
    groups: dict[tuple[frozenset[str], str], list[exp.Expr]] = {}
    for call in calls:
        found = _function(ctx, scope, call, columns)
        order = found.call.args.get("order")
        apart = order.sql() if order and not has_key and _is_total(scope, found) else ""
        groups.setdefault((found.by, apart), []).append(call)
    for by, order in list(groups):
        beside = next((key for key in groups if key[0] == by and key[1]), None)
        if not order and beside is not None:
            groups[beside] += groups.pop((by, order))
    return list(groups.values())


def _is_total(scope: Scope, function: _Function) -> bool:
    """Its order leaves no ties but between equal rows."""
    order = function.call.args.get("order")
    told = {o.this.name for o in order.expressions if isinstance(o.this, exp.Column)} if order else set()
    return set(scope.node.names) <= told | function.by


@dataclass(frozen=True)
class _Function:
    """A window function in its settled form, the columns it partitions by, and the column that it makes."""

    call: exp.Expr
    by: frozenset[str]
    name: str
    shown: Shown


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Window)


def _in_order(scope: Scope, by: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in scope.node.names if name in by)


def _require_over(ctx: Context, part: exp.Expr) -> None:
    for node in own_nodes(part):
        over = node.find_ancestor(exp.Window)
        if is_window_only(node) and over is None:
            raise ctx.bad(f"`{shown(node)}` needs OVER", node, "write OVER (PARTITION BY ... ORDER BY ...)")
        if _is_window(node) and over is not None:
            raise ctx.bad("a window function stands inside another", node, "compute the inner one in a query in FROM")


def _partition_columns(ctx: Context, scope: Scope, calls: Sequence[exp.Expr]) -> tuple[Scope, Mapping[exp.Expr, str]]:
    """Every partition expression as a column."""
    columns: dict[exp.Expr, str] = {}
    for value in (bare(v) for call in calls for v in call.args.get("partition_by") or []):
        if value not in columns:
            columns[value] = value.name if isinstance(value, exp.Column) else ctx.names.fresh("partition")
    made = [(name, value) for value, name in columns.items() if not isinstance(value, exp.Column)]
    return scope.with_node(wider(scope.node, made)), columns


def _function(ctx: Context, scope: Scope, call: exp.Expr, columns: Mapping[exp.Expr, str]) -> _Function:
    if name := call.args.get("alias"):
        raise _no_window(ctx, name)
    ctx.allow(call, "this", "partition_by", "order", "spec", "over")
    listed = [columns[bare(value)] for value in call.args.get("partition_by") or []]
    by = tuple(dict.fromkeys((*scope.carried, *listed)))
    try:
        settled, shape = settled_window(ctx, scope.node, call, by)
    except NoSettledWindow as reason:
        raise ctx.refused(f"`{shown(call)}` {reason}", call, "give it ROWS BETWEEN ... in its OVER") from None
    function = called(call.this)
    label = function.name.lower() if isinstance(function, exp.Anonymous) else function.key
    partition = frozenset(p.name for p in settled.args["partition_by"])
    return _Function(settled, partition, ctx.names.fresh(label), shape)


def _over_columns(part: exp.Expr, swaps: Mapping[exp.Expr, exp.Expr]) -> exp.Expr:
    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node.copy()
        return swaps[node].copy() if node in swaps else node

    return part.transform(swap)
