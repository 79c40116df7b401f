"""The SELECT list: stars written out, names resolved, every column with its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.scalars import column, number
from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import has_aggregate, own_nodes
from matview.sql.lower.resolve import Aliases, lateral, resolve
from matview.sql.lower.scope import Scope, Visible
from matview.sql.lower.unnest import is_generator, unnested


@dataclass(frozen=True)
class Item:
    """A column of the result: its name, and its value over the columns of the relation."""

    name: str
    value: exp.Expr


def select_items(ctx: Context, scope: Scope, expressions: Sequence[exp.Expr]) -> tuple[Scope, tuple[Item, ...]]:
    """The list, and the relation with what generators in the list add to it."""
    items: list[Item] = []
    for expression in expressions:
        if generator := _generator(expression):
            scope, made = _generated(ctx, scope, expression, generator)
            items.extend(made)
        elif star := _star(expression):
            items.extend(_expanded(ctx, scope, expression, star))
        else:
            items.append(_item(ctx, scope, expression, aliases(items)))
    return scope, tuple(items)


def aliases(items: Iterable[Item]) -> Aliases:
    """What the names of a list stand for."""
    found: dict[str, tuple[exp.Expr, ...]] = {}
    for item in items:
        found[item.name.casefold()] = (*found.get(item.name.casefold(), ()), item.value)
    return found


def _item(ctx: Context, scope: Scope, expression: exp.Expr, before: Aliases) -> Item:
    value = expression.this if isinstance(expression, exp.Alias) else expression
    if spot := next((n for n in own_nodes(value) if is_generator(n)), None):
        raise ctx.refused(f"`{shown(spot)}` inside an expression has no rule", spot, "use LATERAL VIEW")
    return Item(output_name(expression), resolve(ctx, value, lateral(ctx, scope, before)))


# generators -----------------------------------------------------------------------------------------------------------


def _generator(expression: exp.Expr) -> exp.Expr | None:
    inner = expression.this if isinstance(expression, exp.Alias | exp.Aliases) else expression
    return inner if isinstance(inner, exp.Expr) and is_generator(inner) else None


def _generated(ctx: Context, scope: Scope, spot: exp.Expr, generator: exp.Expr) -> tuple[Scope, list[Item]]:
    if has_aggregate(generator):
        raise ctx.refused("a generator over an aggregate has no rule", spot, "aggregate in a query in FROM")
    names = [i.name for i in spot.expressions] if isinstance(spot, exp.Aliases) else [spot.alias] if spot.alias else []
    bare = resolve(ctx, generator, lateral(ctx, scope, {}))
    wider = unnested(ctx, scope, bare, generator, names, outer=False)
    made = wider.own.shown[len(scope.own.shown) :]
    return wider.with_own(scope.own), [Item(v.name, column(v.column)) for v in made]


# stars ----------------------------------------------------------------------------------------------------------------


def _star(expression: exp.Expr) -> exp.Star | None:
    inner = expression.this if isinstance(expression, exp.Column) else expression
    return inner if isinstance(inner, exp.Star) else None


def _expanded(ctx: Context, scope: Scope, expression: exp.Expr, star: exp.Star) -> list[Item]:
    ctx.allow(star, "except_")
    chosen = _of_star(ctx, scope, expression)
    dropped = [_dropped(ctx, chosen, name) for name in star.args.get("except_") or []]
    return [Item(v.name, _at(star, column(v.column))) for v in chosen if v not in dropped]


def _at(star: exp.Star, made: exp.Column) -> exp.Column:
    """A column of a star, for messages at the place of the star."""
    made.this.meta.update(star.meta)
    return made


def _of_star(ctx: Context, scope: Scope, expression: exp.Expr) -> tuple[Visible, ...]:
    qualifier = ".".join(part.name for part in expression.parts[:-1]) if isinstance(expression, exp.Column) else ""
    chosen = scope.own.of(qualifier) if qualifier else scope.own.shown
    if not chosen:
        if scope.own.found(qualifier.split(".")):
            raise ctx.refused(f"`{shown(expression)}` stands for fields", expression, "name the fields")
        raise ctx.unknown(f"`{shown(expression)}` stands for no column: there is no such table here", expression)
    for visible in chosen:
        scope.note(visible.column)
    return chosen


def _dropped(ctx: Context, chosen: Sequence[Visible], name: exp.Expr) -> Visible:
    found = next((v for v in chosen if v.is_called(name.name)), None)
    if found is None:
        raise ctx.unknown(f"there is no column `{shown(name)}` to leave out", name)
    return found


# names ----------------------------------------------------------------------------------------------------------------


def output_name(expression: exp.Expr) -> str:
    """A column's name: its alias, its own name, or its text much as Spark writes it."""
    match expression:
        case exp.Alias():
            return expression.alias
        case exp.Column():
            return expression.name
        case exp.Dot():
            return str(expression.expression.name)
    return str(expression.transform(_as_spark_writes).sql("spark", normalize_functions="lower"))


def _as_spark_writes(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Query():
            return exp.var("scalarsubquery()")
        case exp.Column() if not isinstance(node.this, exp.Star):
            return exp.to_identifier(node.name)
        case exp.Star():
            return number(1)
        case exp.Literal() if node.is_string:
            return exp.Var(this=node.name)
        case exp.Binary() if not isinstance(node.parent, exp.Paren) and not isinstance(node, exp.Dot):
            node.set("this", node.this.transform(_as_spark_writes))
            node.set("expression", node.expression.transform(_as_spark_writes))
            return exp.paren(node)
    return node
