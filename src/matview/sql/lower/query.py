"""The lowering of a whole query, and of the queries inside it."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from matview.algebra.nodes import Join, Node, Project
from matview.algebra.scalars import column
from matview.algebra.schema import RESERVED_PREFIX, Schema
from matview.sql.lower.context import Context, Lowered, shown
from matview.sql.lower.functions import depends_on_more
from matview.sql.lower.resolve import NOT_DETERMINED
from matview.sql.lower.scope import Given
from matview.sql.lower.select import lower_select
from matview.sql.lower.setops import limited, lower_set_operation
from matview.sql.lower.sources import values_rows, with_ctes
from matview.sql.lower.where import filtered
from matview.versions.text import refusing_depth


def lower(query: exp.Expr, schema_of: Callable[[exp.Table], Schema], source: str = "<sql>") -> Node:
    """The query as a relational expression whose fields are its output columns.

    `schema_of` tells what a table is like, or raises UnknownTable. Inside, a column is called `<table>.<column>`, at
    the second use of the table `<table>_2.<column>`, and so on: no name stands for two things.
    """
    ctx = Context(schema_of, source, lower_query, filtered)
    _require_determined(ctx, query)
    with refusing_depth():
        lowered = lower_query(ctx, query.copy(), None, "result")
    _require_names(ctx, query, lowered)
    return Project(lowered.node, tuple((name, column(target)) for name, target in lowered.columns))


def _require_determined(ctx: Context, query: exp.Expr) -> None:
    for node in query.walk():
        if depends_on_more(node):
            raise ctx.refused(f"`{shown(node)}` is not determined by the tables", node, NOT_DETERMINED)


def _require_names(ctx: Context, query: exp.Expr, lowered: Lowered) -> None:
    seen: set[str] = set()
    first = query.find(exp.Select) or query
    for i, (name, _) in enumerate(lowered.columns):
        listed = first.expressions
        spot = listed[i] if len(listed) == len(lowered.columns) else query
        if name.casefold() in seen:
            raise ctx.bad(f"two columns of the result have the name `{name}`", spot, "give one another name with AS")
        if not name or name.startswith(RESERVED_PREFIX):
            raise ctx.bad(f"`{name}` cannot be a column's name", spot, "give it another name with AS")
        seen.add(name.casefold())


def lower_query(ctx: Context, query: exp.Expr, given: Given | None, label: str) -> Lowered:
    """A query, evaluated for each of the rows `given`."""
    match query:
        case exp.Select():
            return lower_select(ctx, query, given, label)
        case exp.SetOperation():
            return lower_set_operation(ctx, query, given, label)
        case exp.Subquery():
            ctx.allow(query, "this", "alias", "with_", "order", "limit", "offset")
            inner = with_ctes(ctx, query)
            return limited(inner, query, lower_query(inner, query.this, given, label))
        case exp.Values():
            return _values(ctx, query, given, label)
    raise ctx.refused(f"`{shown(query)}` is no query that a view can have", query)


def _values(ctx: Context, query: exp.Values, given: Given | None, label: str) -> Lowered:
    rows = values_rows(ctx, query, label)
    if given is None:
        return rows
    around = given.scope(ctx.names)
    kept = tuple((name, column(name)) for name in (*(target for _, target in rows.columns), *around.carried))
    return Lowered(Project(Join((rows.node, around.node)), kept), rows.columns, around.carried)
