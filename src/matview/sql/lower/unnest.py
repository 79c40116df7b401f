"""LATERAL VIEW and generators in a SELECT list: a row for every element of an array or entry of a map."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from matview.algebra.nodes import Unnest
from matview.algebra.scalars import type_of
from matview.algebra.schema import Field
from matview.sql.lower.context import Context, shown
from matview.sql.lower.functions import GENERATORS, has_subquery
from matview.sql.lower.resolve import in_scope, resolve
from matview.sql.lower.scope import Layer, Scope, Visible


def lateral_view(ctx: Context, scope: Scope, view: exp.Lateral) -> Scope:
    """LATERAL VIEW [OUTER] explode(array) t AS a."""
    ctx.allow(view, "this", "view", "outer", "alias")
    alias = view.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or []] if alias else []
    generator = resolve(ctx, view.this, in_scope(ctx, scope))
    return unnested(ctx, scope, generator, view, names, bool(view.args.get("outer")))


def is_generator(node: exp.Expr) -> bool:
    return isinstance(node, GENERATORS)


def unnested(
    ctx: Context, scope: Scope, generator: exp.Expr, spot: exp.Expr, names: Sequence[str], outer: bool
) -> Scope:
    """The relation with the columns that a generator makes, at the end of what can be seen."""
    if not isinstance(generator, exp.Explode) or has_subquery(generator):
        raise ctx.refused(f"the generator `{shown(spot)}` has no rule", spot, "use explode or posexplode")
    made = _made(scope, generator, len(names))
    if names and len(names) != len(made):
        raise ctx.bad(f"{len(names)} names are given to {len(made)} columns", spot, "name every column, or none")
    names = names or [name for name, _ in made]
    columns = ctx.names.prefixed(spot.alias or "generated", names)
    fields = tuple(Field(column, kind) for column, (_, kind) in zip(columns, made, strict=True))
    kind, keeps = _kind(generator), isinstance(generator, exp.ExplodeOuter)
    visible = tuple(Visible(spot.alias, name, column) for name, column in zip(names, columns, strict=True))
    layer = Layer((*scope.own.shown, *visible), scope.own.hidden)
    return scope.with_node(Unnest(scope.node, kind(this=generator.this.copy()), fields, outer or keeps)).with_own(layer)


def _kind(generator: exp.Expr) -> type[exp.Explode]:
    return exp.Posexplode if isinstance(generator, exp.Posexplode) else exp.Explode


def _made(scope: Scope, generator: exp.Expr, wanted: int) -> list[tuple[str, str]]:
    """The names and types of a generator's columns; how many are wanted tells a map where the type does not."""
    kind = type_of(generator.this, {f.name: f for f in scope.node.fields})
    parsed = exp.DataType.build(kind, dialect="spark") if kind else None
    inner = [e.sql("spark").lower() for e in parsed.expressions] if parsed else []
    position = [("pos", "int")] if _kind(generator) is exp.Posexplode else []
    is_map = wanted - len(position) == 2 if parsed is None else parsed.this == exp.DataType.Type.MAP
    named = zip(("key", "value") if is_map else ("col",), (*inner, "", ""), strict=False)
    return [*position, *named]
