"""Which clauses a statement may have, and what its WITH means to the queries in it.

sqlglot parses the clauses of every dialect. A clause that nobody looks at would be dropped in silence, so each kind of
node has a list of those that are looked at, and any other is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from sqlglot import exp
from sqlglot.errors import ParseError

from matview.errors import UnsupportedStatement
from matview.sql.pieces import DIALECT, place_of

HEARD: dict[type[exp.Expr], frozenset[str]] = {
    exp.Create: frozenset({"this", "kind", "exists", "properties"}),
    exp.Drop: frozenset({"tables", "kind", "exists", "cascade"}),
    exp.Describe: frozenset({"this", "kind"}),
    exp.Schema: frozenset({"this", "expressions"}),
    exp.ColumnDef: frozenset({"this", "kind", "constraints"}),
    exp.PrimaryKey: frozenset({"expressions"}),
    exp.PrimaryKeyColumnConstraint: frozenset(),
    exp.Insert: frozenset({"with_", "this", "expression", "by_name"}),
    exp.Update: frozenset({"with_", "this", "expressions", "where"}),
    exp.Delete: frozenset({"with_", "this", "where"}),
    exp.TruncateTable: frozenset({"expressions"}),
    exp.Merge: frozenset({"with_", "this", "using", "on", "whens"}),
    exp.When: frozenset({"matched", "source", "condition", "then"}),
    exp.Values: frozenset({"expressions", "alias", "order", "limit", "offset"}),
    **dict.fromkeys(
        (exp.Union, exp.Except, exp.Intersect),
        frozenset(
            {"with_", "this", "expression", "distinct", "distribute", "sort", "cluster", "order"} | {"limit", "offset"}
        ),
    ),
    exp.Select: frozenset(
        {"with_", "hint", "distinct", "expressions", "from_", "joins", "laterals", "pivots", "sample", "where", "group"}
        | {"having", "qualify", "windows", "distribute", "sort", "cluster", "order", "limit", "offset"}
    ),
}


INSTEAD: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Update, "from_"): "use MERGE INTO ... USING",
    (exp.Delete, "using"): "use MERGE INTO ... USING ... WHEN MATCHED THEN DELETE",
    (exp.Insert, "overwrite"): "TRUNCATE TABLE, then INSERT INTO, in one transaction",
    (exp.Insert, "where"): "DELETE FROM ... WHERE, then INSERT INTO, in one transaction",
    (exp.Create, "expression"): "CREATE MATERIALIZED VIEW ... AS; or CREATE TABLE, then INSERT INTO ... SELECT",
    (exp.Create, "replace"): "DROP TABLE IF EXISTS, then CREATE TABLE",
}


def check_clauses(tree: exp.Expr, source: str) -> None:
    """UnsupportedStatement for the first clause or type, anywhere in the statement, that would not be heard."""
    for node in tree.walk():
        if isinstance(node, exp.DataType):
            _refuse_another_type(node, source)
        heard = HEARD.get(type(node))
        if heard is not None:
            refuse_others(node, heard, source)


def _refuse_another_type(kind: exp.DataType, source: str) -> None:
    """A type that would be written as another one: TIME, which Delta cannot hold, would become TIMESTAMP."""
    text = kind.sql(DIALECT)
    with suppress(ParseError):  # an interval's units alone are no type
        if exp.DataType.build(text, dialect=DIALECT).this != kind.this:
            around: exp.Expr = kind
            while place_of(around) is None and around.parent is not None:
                around = around.parent
            raise UnsupportedStatement(
                f"the type {kind.this.value} is not supported",
                where=place_of(around, source),
                help="a time of day can be kept as STRING, or as an INTERVAL DAY TO SECOND since midnight",
            )


def refuse_others(node: exp.Expr, heard: frozenset[str], source: str) -> None:
    """UnsupportedStatement if the node says anything else than that."""
    for name, value in node.args.items():
        if name not in heard and _says_something(value):
            instead = INSTEAD.get((type(node), name), f"not supported here: {_clause(name, value)}")
            raise unsupported(node, source, instead)


def unsupported(tree: exp.Expr, source: str, help: str | None = None) -> UnsupportedStatement:
    text = tree.sql(DIALECT)
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UnsupportedStatement(f"Matview does not run `{shown}`", where=place_of(tree, source), help=help)


def _says_something(value: object) -> bool:
    """The parser leaves empty lists, and an empty list of index parameters behind every key."""
    if isinstance(value, exp.IndexParameters):
        return any(map(_says_something, value.args.values()))
    return bool(value) if isinstance(value, list | str) else value is not None and value is not False


def _clause(name: str, value: object) -> str:
    """As it stands in the text, or its name where it is a mere word."""
    parts = value if isinstance(value, list) else [value]
    texts = [part.sql(DIALECT) if isinstance(part, exp.Expr) else part for part in parts]
    shown = ", ".join(text for text in texts if isinstance(text, str))
    return f"`{shown or name.strip('_').replace('_', ' ').upper()}`"


# WITH -----------------------------------------------------------------------------------------------------------------


def inherit(part: exp.Expr, outer: exp.With | None, source: str) -> exp.Expr:
    """The part of a statement with the statement's WITH in each of its queries, so that it can stand alone."""
    if outer is None:
        return part
    made = part.copy()
    for query in list(_outermost_queries(made)):
        query.set("with_", _joined(outer, query.args.get("with_"), source))
    return made


def _outermost_queries(part: exp.Expr) -> Iterator[exp.Expr]:
    return (node for node in part.walk(prune=_is_query) if _is_query(node))


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Select | exp.SetOperation)


def _joined(outer: exp.With, inner: exp.With | None, source: str) -> exp.With:
    """What the outer one defines, then what the inner one does; a name in both would change what is read."""
    if inner is None:
        return outer.copy()
    names = {cte.alias.casefold() for cte in outer.expressions}
    if twice := [cte.alias for cte in inner.expressions if cte.alias.casefold() in names]:
        raise unsupported(inner, source, f"{twice[0]!r} is defined by two WITHs, one inside the other: rename one")
    recursive = bool(outer.args.get("recursive") or inner.args.get("recursive"))
    definitions = [cte.copy() for cte in (*outer.expressions, *inner.expressions)]
    return exp.With(expressions=definitions, recursive=recursive)
