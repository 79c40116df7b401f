"""Names to columns: every name of an expression becomes a column of the relation, or is complained about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from matview.algebra.scalars import column
from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import BARE, bare, is_aggregate
from matview.sql.lower.scope import Layer, Scope

Find = Callable[[exp.Column], exp.Expr | None]
"""What a name stands for; None if for nothing."""

Aliases = Mapping[str, tuple[exp.Expr, ...]]
"""What the names of a SELECT list stand for, by folded name; more than one thing where a name repeats."""


def in_scope(ctx: Context, scope: Scope) -> Find:
    """The columns of the relation, then those of the queries around."""
    return lambda name: _looked_up(ctx, scope, scope.layers, name)


def lateral(ctx: Context, scope: Scope, aliases: Aliases) -> Find:
    """The relation's own columns, then what the SELECT list names, then the queries around."""

    def find(name: exp.Column) -> exp.Expr | None:
        own = _looked_up(ctx, scope, scope.layers[:1], name)
        alias = own or _aliased(ctx, aliases, name)
        return alias or _looked_up(ctx, scope, scope.layers[1:], name)

    return find


def one_meaning(ctx: Context, scope: Scope, aliases: Aliases) -> Find:
    """As `lateral`, where both the relation and the SELECT list have the name for one thing only.

    In QUALIFY Spark takes the one or the other, by what else the list has and where the window function stands.
    """
    find = lateral(ctx, scope, aliases)

    def certain(name: exp.Column) -> exp.Expr | None:
        named = _aliased(ctx, aliases, name)
        found = find(name)
        if named is not None and found is not None and bare(named) != bare(found):
            what = f"`{shown(name)}` in QUALIFY may be a column or what SELECT calls so"
            raise ctx.refused(what, name, "give the column of the SELECT list another name")
        return found

    return certain


def own_column(ctx: Context, scope: Scope, name: exp.Column) -> exp.Expr | None:
    """What the relation itself calls so; None if nothing, or several things."""
    parts = [part.name for part in name.parts]
    found = {visible.column for visible, _ in scope.own.found(parts)}
    return _looked_up(ctx, scope, scope.layers[:1], name) if len(found) == 1 else None


def outputs_first(ctx: Context, scope: Scope, aliases: Aliases) -> Find:
    """What the SELECT list names, then all the rest."""
    return lambda name: _aliased(ctx, aliases, name) or _looked_up(ctx, scope, scope.layers, name)


def resolve(ctx: Context, expression: exp.Expr, find: Find, in_aggregates: Find | None = None) -> exp.Expr:
    """The expression over columns of the relation. Subqueries stay as they are: they have scopes of their own."""

    def swap(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node.copy()
        if isinstance(node, exp.Column):
            return _resolved(ctx, node, find)
        if in_aggregates is not None and is_aggregate(node):
            return resolve(ctx, node, in_aggregates)
        return node

    return expression.transform(swap)


def _resolved(ctx: Context, name: exp.Column, find: Find) -> exp.Expr:
    if isinstance(name.this, exp.Star):
        raise ctx.bad(f"`{shown(name)}` cannot stand here", name, "name the columns")
    if found := find(name):
        return found
    if len(name.parts) == 1 and name.name.lower() in BARE:
        raise ctx.refused(f"`{name.name}` is not determined by the tables", name, NOT_DETERMINED)
    raise ctx.unknown(f"there is no column `{shown(name)}` here", name)


NOT_DETERMINED = "keep the value in a column of a table, or ask for it when the view is read"


def _aliased(ctx: Context, aliases: Aliases, name: exp.Column) -> exp.Expr | None:
    if len(name.parts) != 1 or name.name.casefold() not in aliases:
        return None
    found, *others = dict.fromkeys(aliases[name.name.casefold()])
    if others:
        raise ctx.bad(f"`{shown(name)}` is ambiguous", name, "give the columns of the SELECT list different names")
    return found.copy() if isinstance(found, exp.Column) else exp.paren(found)


def _looked_up(ctx: Context, scope: Scope, layers: Sequence[Layer], name: exp.Column) -> exp.Expr | None:
    parts = [part.name for part in name.parts]
    for layer in layers:
        found = layer.found(parts)
        if len({v.column for v, _ in found}) > 1:
            choices = " or ".join(sorted({f"`{v.qualifier}.{v.name}`" for v, _ in found}))
            raise ctx.bad(f"`{shown(name)}` is ambiguous", name, f"write {choices}")
        if found:
            visible, length = found[0]
            scope.note(visible.column)
            return _reference(visible.column, name.parts, length)
    return None


def _reference(target: str, parts: Sequence[exp.Expr], length: int) -> exp.Expr:
    """The column, at the place where its name stood, and the fields of it that the name goes on to."""
    made: exp.Expr = column(target)
    made.this.meta.update(parts[0].meta)
    for part in parts[length:]:
        made = exp.Dot(this=made, expression=part.copy())
    return made
