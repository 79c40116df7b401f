"""Which names in a query denote tables, and what the query is with other relations in their place (section 4.1).

The paper rewrites every reference to an updatable attribute. Put in the table's place, under the table's name, a
subquery with the table's columns does so in every position at once: select, where, join, group by, having, order by,
window, subquery, CTE, lateral.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

# What a reference carries besides its name: it stays where it was, around the relation put in its place.
_CARRIED = ("joins", "laterals", "pivots", "sample")
_UNDERSTOOD = frozenset({"this", "db", "catalog", "alias", *_CARRIED})


def table_references(query: exp.Expr) -> list[exp.Table]:
    """The references to tables, in no order to rely on: no CTE names where they shadow, no functions, no hints."""
    return [table for table in query.find_all(exp.Table) if _is_reference(table) and not _is_cte(table)]


def rewrite_query(query: exp.Expr, replace: Callable[[exp.Table], exp.Expr]) -> exp.Expr:
    """The query with `replace(reference)` in place of each table reference, under the reference's alias or name.

    `replace` gives a query, a subquery or a table, and sees whatever else the reference says (`VERSION AS OF`), which
    is then gone: `unheard` tells what. The query passed in is left as it was.
    """
    result = query.copy()
    references = table_references(result)
    _drop_qualifiers(result, references)
    for reference in references:
        relation = named(replace(reference), _name(reference), _column_aliases(reference))
        for part in _CARRIED:
            if carried := reference.args.get(part):
                relation.set(part, carried)
        result = relation if reference is result else result
        reference.replace(relation)
    return result


def unheard(reference: exp.Table) -> tuple[str, ...]:
    """What a reference says beyond name, alias and what is carried along; `t@v1` comes as an alias that is no name."""
    others = [name for name, value in reference.args.items() if value and name not in _UNDERSTOOD]
    alias = reference.args.get("alias")
    odd = alias is not None and alias.this is not None and not isinstance(alias.this, exp.Identifier)
    return (*others, "version") if odd else tuple(others)


def named(relation: exp.Expr, name: exp.Identifier, columns: list[exp.Identifier] | None = None) -> exp.Expr:
    """A relation under a name; a query becomes a subquery."""
    relation = relation.copy()
    if isinstance(relation, exp.Query) and not isinstance(relation, exp.Subquery):
        relation = exp.Subquery(this=relation)
    relation.set("alias", exp.TableAlias(this=name.copy(), columns=[c.copy() for c in columns or []]))
    return relation


def _is_reference(table: exp.Table) -> bool:
    """A name in a FROM or a JOIN; a function's call and the names inside a hint are exp.Table as well."""
    within = table.find_ancestor(exp.Hint, exp.Query)
    return isinstance(table.this, exp.Identifier) and not isinstance(within, exp.Hint)


def _is_cte(table: exp.Table) -> bool:
    """Some WITH around the reference defines its name, where the reference stands."""
    if table.args.get("db"):
        return False
    return any(table.name.casefold() == cte.alias.casefold() for cte in _ctes_in_scope(table))


def _ctes_in_scope(node: exp.Expr) -> Iterator[exp.CTE]:
    """From the inside out. Inside a WITH, a CTE sees those before it, and itself if recursive."""
    inner, outer = node, node.parent
    while outer is not None:
        if isinstance(outer, exp.With):
            place = next(k for k, cte in enumerate(outer.expressions) if cte is inner)
            yield from outer.expressions[: place + bool(outer.args.get("recursive"))]
        elif not isinstance(inner, exp.With) and (definitions := outer.args.get("with_")):
            yield from definitions.expressions
        inner, outer = outer, outer.parent


def _name(reference: exp.Table) -> exp.Identifier:
    alias = reference.args.get("alias")
    name = alias.this if alias is not None and alias.this is not None else reference.this
    if not isinstance(name, exp.Identifier):
        raise TypeError(f"no name: {reference!r}")
    return name


def _column_aliases(reference: exp.Table) -> list[exp.Identifier]:
    alias = reference.args.get("alias")
    return list(alias.args.get("columns") or []) if alias is not None else []


def _drop_qualifiers(query: exp.Expr, references: list[exp.Table]) -> None:
    """`shop.sales.amount` is `sales.amount` once `shop.sales` is a subquery named `sales`."""
    qualified = {_path(r.args.get("db"), r.this) for r in references if r.args.get("db") and not r.alias}
    for column in query.find_all(exp.Column):
        if column.args.get("db") and _path(column.args["db"], column.args["table"]) in qualified:
            column.set("db", None)
            column.set("catalog", None)


def _path(*parts: exp.Expr | None) -> tuple[str, ...]:
    return tuple(part.name.casefold() if part is not None else "" for part in parts)
