"""Spark SQL text to statements; whatever is not understood is an error that says where."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from matview.algebra.schema import Column, Schema
from matview.errors import BadDefinition, Place, SqlSyntaxError, UnsupportedStatement
from matview.sql import statements as st

DIALECT = "spark"
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_SET_VERSIONS = re.compile(r"^\s*WAREHOUSE\s+SET\s+VERSIONS\s*=?\s*(\d+)\s*$", re.IGNORECASE)


def parse(text: str, source: str = "<sql>") -> tuple[st.Statement, ...]:
    """Every statement of a text, in order."""
    try:
        trees = sqlglot.parse(text, dialect=DIALECT)
    except (ParseError, TokenError) as error:
        raise _syntax_error(error, source) from None
    return tuple(_statement(tree, source) for tree in trees if tree is not None)


def parse_one(text: str, source: str = "<sql>") -> st.Statement:
    """The only statement of a text."""
    found = parse(text, source)
    if len(found) != 1:
        raise SqlSyntaxError(
            f"expected one statement, found {len(found)}", help="run several with `matview sql --file`, or one by one"
        )
    return found[0]


def place_of(node: exp.Expr | None, source: str = "<sql>") -> Place | None:
    """Where a node begins in the text, when the parser knows."""
    if node is None:
        return None
    spots = [(n.meta["line"], n.meta["col"], len(n.name)) for n in node.find_all(exp.Identifier) if "line" in n.meta]
    if not spots:
        return None
    line, end_column, length = min(spots)
    return Place(line, max(1, end_column - length + 1), source)


def _syntax_error(error: ParseError | TokenError, source: str) -> SqlSyntaxError:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        what = f"{first['description']} near {first['highlight']!r}" if first["highlight"] else first["description"]
        return SqlSyntaxError(what, where=Place(first["line"] or 1, first["col"] or 1, source))
    return SqlSyntaxError(str(error).splitlines()[0])


def _statement(tree: exp.Expr, source: str) -> st.Statement:
    match tree:
        case exp.Query() | exp.Values():
            return st.Query(tree)
        case exp.Create() if tree.kind == "TABLE" and tree.expression is None and not tree.args.get("replace"):
            return _create(tree, source)
        case exp.Drop() if tree.args.get("kind") == "TABLE":
            return _drop(tree, source)
        case exp.Describe() if isinstance(tree.this, exp.Table):
            return st.Describe(_table_name(tree.this, source))
        case exp.Command():
            return _command(tree)
    return _change(tree, source)


def _change(tree: exp.Expr, source: str) -> st.Change:
    match tree:
        case exp.Insert() if not tree.args.get("overwrite") and not tree.args.get("partition"):
            return _insert(tree, source)
        case exp.Update():
            return _update(tree, source)
        case exp.Delete() if not tree.args.get("using"):
            return _delete(tree, source)
        case exp.TruncateTable() if len(tree.expressions) == 1:
            return _truncate(tree, source)
        case exp.Merge():
            return _merge(tree, source)
    raise _unsupported(tree, source)


def _unsupported(tree: exp.Expr, source: str) -> UnsupportedStatement:
    text = tree.sql(DIALECT)
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UnsupportedStatement(f"Matview does not run `{shown}`", where=place_of(tree, source))


def _command(tree: exp.Command) -> st.Statement:
    rest = tree.args.get("expression")
    rest_text = rest.name if isinstance(rest, exp.Expr) else str(rest or "")
    if tree.name.upper() == "SHOW" and rest_text.strip().upper() == "TABLES":
        return st.ShowTables()
    if tree.name.upper() == "ALTER" and (found := _SET_VERSIONS.match(rest_text)):
        return st.SetVersions(int(found[1]))
    raise UnsupportedStatement(f"Matview does not run `{tree.name.upper()} {rest_text.strip()}`".rstrip())


def _table_name(table: exp.Expr, source: str) -> str:
    if not isinstance(table, exp.Table):
        raise UnsupportedStatement("expected the name of a table", where=place_of(table, source))
    if table.db or table.catalog:
        raise UnsupportedStatement(
            f"{table.sql(DIALECT)}: a warehouse has one flat set of table names",
            where=place_of(table, source),
            help=f"write `{table.name}`",
        )
    return table.name


def _alias(table: exp.Expr) -> str:
    return table.alias or table.name


def _create(tree: exp.Create, source: str) -> st.CreateTable:
    if not isinstance(tree.this, exp.Schema):
        raise BadDefinition("CREATE TABLE needs a list of columns", where=place_of(tree, source))
    columns: list[Column] = []
    key: list[str] = []
    for item in tree.this.expressions:
        match item:
            case exp.ColumnDef():
                columns.append(_column(item, key, source))
            case exp.PrimaryKey():
                key.extend(part.name for part in item.expressions)
            case _:
                raise BadDefinition(
                    f"`{item.sql(DIALECT)}` is not supported in CREATE TABLE", where=place_of(item, source)
                )
    cluster_by, properties = _properties(tree, source)
    schema = _schema(columns, key, place_of(tree, source))
    known = [_known_column(schema, name, source) for name in cluster_by]
    name = _table_name(tree.this.this, source)
    return st.CreateTable(name, schema, bool(tree.args.get("exists")), tuple(known), properties)


def _schema(columns: list[Column], key: list[str], where: Place | None) -> Schema:
    by_folded = {c.name.casefold(): c.name for c in columns}
    exact_key = tuple(by_folded.get(name.casefold(), name) for name in key)
    required = {name.casefold() for name in key}
    made = tuple(Column(c.name, c.type, c.nullable and c.name.casefold() not in required) for c in columns)
    try:
        return Schema(made, exact_key)
    except BadDefinition as error:
        raise BadDefinition(error.what, where=where) from None


def _known_column(schema: Schema, name: str, source: str) -> str:
    column = schema.column(name)
    if column is None:
        raise BadDefinition(f"CLUSTER BY column {name!r} is no column of the table", where=Place(1, 1, source))
    return column.name


def _column(item: exp.ColumnDef, key: list[str], source: str) -> Column:
    kind = item.args.get("kind")
    if not isinstance(kind, exp.DataType):
        raise BadDefinition(f"column {item.name!r} needs a type", where=place_of(item, source))
    nullable = True
    for constraint in item.args.get("constraints") or []:
        match constraint.kind:
            case exp.NotNullColumnConstraint():
                nullable = bool(constraint.kind.args.get("allow_null"))
            case exp.PrimaryKeyColumnConstraint():
                key.append(item.name)
            case exp.CommentColumnConstraint():
                pass
            case other:
                raise BadDefinition(
                    f"column {item.name!r}: `{other.sql(DIALECT)}` is not supported", where=place_of(item, source)
                )
    return Column(item.name, kind.sql(DIALECT).lower() if not kind.expressions else kind.sql(DIALECT), nullable)


def _properties(tree: exp.Create, source: str) -> tuple[list[str], dict[str, str]]:
    cluster_by: list[str] = []
    properties: dict[str, str] = {}
    holder = tree.args.get("properties")
    for item in holder.expressions if holder else []:
        match item:
            case exp.Cluster():
                cluster_by = [part.name for part in item.expressions]
            case exp.ClusterProperty():
                cluster_by = [part.name for part in item.expressions]
            case exp.Property():
                properties[item.name] = item.args["value"].name
            case exp.FileFormatProperty() if item.name.lower() == "delta":
                pass
            case _:
                raise BadDefinition(
                    f"`{item.sql(DIALECT)}` is not supported in CREATE TABLE", where=place_of(tree, source)
                )
    return cluster_by, properties


def _drop(tree: exp.Drop, source: str) -> st.DropTable:
    tables = tree.args.get("tables") or [tree.this]
    if len(tables) != 1:
        raise _unsupported(tree, source)
    return st.DropTable(_table_name(tables[0], source), bool(tree.args.get("exists")))


def _insert(tree: exp.Insert, source: str) -> st.Insert:
    target, columns = tree.this, ()
    if isinstance(target, exp.Schema):
        target, columns = target.this, tuple(part.name for part in target.expressions)
    query = tree.expression
    if not isinstance(query, exp.Query | exp.Values):
        raise _unsupported(tree, source)
    if outer := tree.args.get("with_"):
        query = query.copy()
        query.set("with_", outer.copy())
    return st.Insert(_table_name(target, source), columns, query)


def _assignments(items: list[exp.Expr], source: str) -> Mapping[str, exp.Expr] | st.SetAll:
    if len(items) == 1 and isinstance(items[0], exp.Star):
        return st.SetAll()
    made: dict[str, exp.Expr] = {}
    for item in items:
        if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
            raise SqlSyntaxError(f"`{item.sql(DIALECT)}` is no assignment", where=place_of(item, source))
        if item.this.name in made:
            raise SqlSyntaxError(f"column {item.this.name!r} is assigned twice", where=place_of(item, source))
        made[item.this.name] = item.expression
    return made


def _update(tree: exp.Update, source: str) -> st.Update:
    if tree.args.get("from_") or tree.args.get("from"):
        raise UnsupportedStatement("UPDATE ... FROM is not Spark SQL", help="use MERGE INTO ... USING")
    assignments = _assignments(tree.expressions, source)
    if isinstance(assignments, st.SetAll):
        raise _unsupported(tree, source)
    return st.Update(_table_name(tree.this, source), _alias(tree.this), assignments, _condition(tree))


def _truncate(tree: exp.TruncateTable, source: str) -> st.Delete:
    name = _table_name(tree.expressions[0], source)
    return st.Delete(name, name, None)


def _condition(tree: exp.Expr) -> exp.Expr | None:
    where = tree.args.get("where")
    return where.this if where else None


def _delete(tree: exp.Delete, source: str) -> st.Delete:
    return st.Delete(_table_name(tree.this, source), _alias(tree.this), _condition(tree))


def _merge(tree: exp.Merge, source: str) -> st.Merge:
    using = tree.args["using"]
    clauses = tuple(_when(when, source) for when in tree.args["whens"].expressions)
    if tree.args.get("on") is None:
        raise SqlSyntaxError("MERGE needs ON", where=place_of(tree, source))
    return st.Merge(
        _table_name(tree.this, source), _alias(tree.this), using, using.alias_or_name, tree.args["on"], clauses
    )


def _when(when: exp.When, source: str) -> st.WhenMatched | st.WhenNotMatched:
    condition, then = when.args.get("condition"), when.args["then"]
    has_source = not when.args.get("source")
    match then:
        case exp.Insert():
            return st.WhenNotMatched(condition, _merge_values(then, source))
        case exp.Update():
            return st.WhenMatched(condition, _assignments(then.expressions, source), has_source)
        case exp.Var() if then.name.upper() == "DELETE":
            return st.WhenMatched(condition, None, has_source)
    raise _unsupported(when, source)


def _merge_values(then: exp.Insert, source: str) -> Mapping[str, exp.Expr] | st.SetAll:
    if isinstance(then.this, exp.Star):
        return st.SetAll()
    if not isinstance(then.this, exp.Tuple) or not isinstance(then.expression, exp.Tuple):
        raise _unsupported(then, source)
    names = [part.name for part in then.this.expressions]
    values = then.expression.expressions
    if len(names) != len(values):
        raise SqlSyntaxError(
            f"INSERT names {len(names)} columns and gives {len(values)} values", where=place_of(then, source)
        )
    return dict(zip(names, values, strict=True))
