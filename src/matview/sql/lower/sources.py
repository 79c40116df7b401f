"""FROM: tables, derived tables, common table expressions, VALUES, each with what its columns are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from matview.algebra.nodes import Node, Scan, Values
from matview.algebra.scalars import nullable, type_of
from matview.algebra.schema import Field
from matview.errors import UnknownTable
from matview.sql.lower.context import Context, Cte, Lowered, shown
from matview.sql.lower.functions import bare, has_aggregate, has_subquery, has_window
from matview.sql.lower.scope import Layer, Scope, Visible

UNIT = Values((), ((),))
"""One row without columns: what a SELECT without FROM reads."""


def with_ctes(ctx: Context, query: exp.Expr) -> Context:
    """The context inside a query with WITH: each expression sees those before it."""
    clause = query.args.get("with_")
    if clause is None:
        return ctx
    if clause.args.get("recursive"):
        raise ctx.refused("a recursive query has no rule", clause, "write the recursion out as far as it goes")
    ctes = dict(ctx.ctes)
    for definition in clause.expressions:
        ctx.allow(definition, "this", "alias")
        ctes[definition.alias.casefold()] = Cte(definition, dict(ctes))
    return ctx.with_ctes(ctes)


def table_scope(ctx: Context, table: exp.Table) -> Scope:
    """A table by its name, or the common table expression that has the name."""
    ctx.allow(table, "this", "alias", "db", "catalog", "joins")
    if not isinstance(table.this, exp.Identifier):
        raise ctx.refused(f"the table function `{shown(table.this)}` has no rule", table, "use LATERAL VIEW or VALUES")
    cte = None if table.db else ctx.ctes.get(table.name.casefold())
    return _scan(ctx, table) if cte is None else _common(ctx, table, cte)


def _scan(ctx: Context, table: exp.Table) -> Scope:
    try:
        schema = ctx.schema_of(table)
    except UnknownTable as error:
        raise UnknownTable(error.what, where=error.where or ctx.where(table), help=error.help) from None
    name = ctx.spellings.setdefault(table.name.casefold(), table.name)
    names = dict(zip(schema.names, ctx.names.prefixed(name, schema.names), strict=True))
    fields = tuple(Field(names[c.name], c.type, c.nullable) for c in schema.columns)
    scan = Scan(name, schema.names, fields, tuple(names[k] for k in schema.key))
    return named(ctx, scan, tuple(names.items()), table)


def _common(ctx: Context, table: exp.Table, cte: Cte) -> Scope:
    label = table.alias or table.name
    definition = cte.definition
    lowered = ctx.lower_query(ctx.with_ctes(cte.ctes), definition.this, None, label)
    inner = named(ctx, lowered.node, lowered.columns, definition)
    columns = tuple((v.name, v.column) for v in inner.own.shown)
    return named(ctx, lowered.node, columns, table)


def derived_scope(ctx: Context, source: exp.Expr, lowered: Lowered) -> Scope:
    """A query in parentheses with an alias."""
    return named(ctx, lowered.node, lowered.columns, source)


def values_scope(ctx: Context, values: exp.Values) -> Scope:
    lowered = values_rows(ctx, values, values.alias or "values")
    return named(ctx, lowered.node, lowered.columns, values)


def values_rows(ctx: Context, values: exp.Values, label: str) -> Lowered:
    """Rows written out; without other names their columns are `col1`, `col2` ..."""
    ctx.allow(values, "expressions", "alias")
    rows = tuple(_row(ctx, row) for row in values.expressions)
    width = len(rows[0])
    if odd := next((i for i, row in enumerate(rows) if len(row) != width), None):
        raise ctx.bad("the rows of VALUES differ in width", values.expressions[odd], "give every row as many values")
    names = tuple(f"col{i + 1}" for i in range(width))
    columns = ctx.names.prefixed(label, names)
    fields = tuple(_field(name, [row[i] for row in rows]) for i, name in enumerate(columns))
    return Lowered(Values(fields, rows), tuple(zip(names, columns, strict=True)))


def _row(ctx: Context, row: exp.Expr) -> tuple[exp.Expr, ...]:
    cells = row.expressions if isinstance(row, exp.Tuple) else [bare(row)]
    for cell in cells:
        if has_subquery(cell) or has_aggregate(cell) or has_window(cell):
            raise ctx.refused(f"`{shown(cell)}` in VALUES has no rule", cell, "write a constant")
        if name := cell.find(exp.Column):
            raise ctx.unknown(f"there is no column `{shown(name)}` in VALUES", name)
    return tuple(cell.copy() for cell in cells)


def _field(name: str, cells: Sequence[exp.Expr]) -> Field:
    types = {type_of(cell, {}) for cell in cells if not isinstance(cell, exp.Null)}
    return Field(name, types.pop() if len(types) == 1 else "", any(nullable(cell, {}) for cell in cells))


def named(ctx: Context, node: Node, columns: Sequence[tuple[str, str]], source: exp.Expr) -> Scope:
    """The relation under its alias; a list of column aliases renames the columns."""
    alias = source.args.get("alias")
    aliases = list(alias.args.get("columns") or []) if isinstance(alias, exp.TableAlias) else []
    if aliases and len(aliases) != len(columns):
        raise ctx.bad(
            f"{len(aliases)} names are given to {len(columns)} columns", aliases[0], "name every column, or none"
        )
    names = [a.name for a in aliases] or [name for name, _ in columns]
    qualifier = source.alias or (source.name if isinstance(source, exp.Table) else "")
    visible = tuple(Visible(qualifier, name, column) for name, (_, column) in zip(names, columns, strict=True))
    return Scope(node, (Layer(visible),))


def beside(left: Scope, right: Scope) -> Layer:
    """What can be seen of two relations together."""
    return Layer((*left.own.shown, *right.own.shown), (*left.own.hidden, *right.own.hidden))


def unqualified(layer: Layer, alias: str) -> Layer:
    """The columns of a relation in parentheses, under its alias if it has one."""
    return Layer(tuple(replace(v, qualifier=alias) for v in layer.shown)) if alias else layer
