"""Spark SQL text to statements; whatever is not understood is an error that says where."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, TokenError

from matview.algebra.schema import Column, Schema
from matview.errors import BadDefinition, Place, SqlSyntaxError, TableInViewgroup, UnsupportedStatement
from matview.groups.graph import BASE
from matview.spelling import meant
from matview.sql import statements as st
from matview.sql.clauses import check_clauses, inherit, refuse_others, unsupported
from matview.sql.groups import GROUP_STATEMENTS, GroupParser
from matview.sql.pieces import DIALECT, Piece, place_of, place_of_token, split
from matview.sql.settings import OWN_PREFIX
from matview.sql.sources import SOURCE_STATEMENTS, SourceParser
from matview.sql.views import VIEW_STATEMENTS, ViewParser
from matview.versions.text import refusing_depth

__all__ = ["DIALECT", "parse", "parse_one", "place_of"]
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_SET_VERSIONS = re.compile(r"^\s*WAREHOUSE\s+SET\s+VERSIONS\s*=?\s*(\d+)\s*$", re.IGNORECASE)


_VERBS = (
    *("ALTER", "CREATE", "DELETE", "DESCRIBE", "DROP", "EXPLAIN", "FROM", "INSERT", "MERGE", "REFRESH", "SELECT"),
    *("SHOW", "TRUNCATE", "UPDATE", "VALUES", "WITH"),
)
_LACKING = re.compile(r"^Required keyword: '\w+' missing for <class '[^']*'>")
_TOKEN = re.compile(r"<Token token_type: TokenType\.(\w+), text: (.*), line: \d+, col: .*>")


def parse(text: str, source: str = "<sql>") -> tuple[st.Statement, ...]:
    """Every statement of a text, in order."""
    refuse_half_characters(text)
    try:
        with refusing_depth():
            return tuple(_parse_piece(piece, source) for piece in split(text))
    except (ParseError, TokenError) as error:
        raise _syntax_error(error, source) from None
    except ValueError as error:  # the parser's own, for names that are none
        raise SqlSyntaxError(str(error)) from None


def refuse_half_characters(text: str) -> None:
    """No database takes half of a surrogate pair for a character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SqlSyntaxError(f"{text[error.start]!r} is no character") from None


def _parse_piece(piece: Piece, source: str) -> st.Statement:
    if piece.begins_with(*GROUP_STATEMENTS):
        return GroupParser(piece, source).statement()
    if piece.begins_with(*SOURCE_STATEMENTS):
        return SourceParser(piece, source).statement()
    if piece.begins_with(*VIEW_STATEMENTS):
        return ViewParser(piece, source).statement()
    try:
        trees = [tree for tree in sqlglot.parse(piece.text, dialect=DIALECT) if tree is not None]
    except ParseError:
        _refuse_misspelt(piece.tokens[0], source)
        raise
    return _statement(trees[0], source)


def _refuse_misspelt(first: Token, source: str) -> None:
    """A text that is no SQL, and begins with a word that is none, but looks like one."""
    if first.token_type is TokenType.VAR and (asked := meant(first.text, _VERBS)) is not None:
        where = place_of_token(first, source)
        raise SqlSyntaxError(f"no statement begins with {first.text!r}", where=where, help=asked)


def parse_one(text: str, source: str = "<sql>") -> st.Statement:
    """The only statement of a text."""
    found = parse(text, source)
    if len(found) != 1:
        raise SqlSyntaxError(
            f"expected one statement, found {len(found)}", help="run several with `matview sql --file`, or one by one"
        )
    return found[0]


def _syntax_error(error: ParseError | TokenError, source: str) -> SqlSyntaxError:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        told = _LACKING.sub("something is missing", first["description"])
        told = _TOKEN.sub(lambda found: "the end" if found[1] == "SENTINEL" else repr(found[2]), told)
        what = f"{told} near {first['highlight']!r}" if first["highlight"] else told
        return SqlSyntaxError(what, where=Place(first["line"] or 1, _column_of(first), source))
    return SqlSyntaxError(str(error).splitlines()[0])


def _column_of(found: Mapping[str, Any]) -> int:
    """Where the token begins; the parser says where it ends."""
    return max(1, (found["col"] or 1) - max(0, len(found["highlight"] or "") - 1))


def _statement(tree: exp.Expr, source: str) -> st.Statement:
    check_clauses(tree, source)
    match tree:
        case exp.Query() | exp.Values():
            return st.Query(tree)
        case exp.Create() if tree.kind == "TABLE":
            return _create(tree, source)
        case exp.Drop() if tree.args.get("kind") == "TABLE":
            return _drop(tree, source)
        case exp.Describe() if isinstance(tree.this, exp.Table) and tree.args.get("kind") in (None, "TABLE"):
            return st.Describe(_table_name(tree.this, source))
        case exp.Command():
            return _command(tree)
    return _change(tree, source)


def _change(tree: exp.Expr, source: str) -> st.Change:
    match tree:
        case exp.Insert():
            return _insert(tree, source)
        case exp.Update():
            return _update(tree, source)
        case exp.Delete():
            return _delete(tree, source)
        case exp.TruncateTable() if len(tree.expressions) == 1:
            return _truncate(tree, source)
        case exp.Merge():
            return _merge(tree, source)
    raise unsupported(tree, source)


def _command(tree: exp.Command) -> st.Statement:
    rest = tree.args.get("expression")
    rest_text = rest.name if isinstance(rest, exp.Expr) else str(rest or "")
    if tree.name.upper() == "SHOW" and rest_text.strip().upper() == "TABLES":
        return st.ShowTables()
    if tree.name.upper() == "ALTER" and (found := _SET_VERSIONS.match(rest_text)):
        return st.SetVersions(int(found[1]))
    raise UnsupportedStatement(f"Matview does not run `{tree.name.upper()} {rest_text.strip()}`".rstrip())


def _table_name(table: exp.Expr, source: str) -> str:
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise UnsupportedStatement("expected the name of a table", where=place_of(table, source))
    if table.db or table.catalog:
        raise UnsupportedStatement(
            f"{table.sql(DIALECT)}: a warehouse has one flat set of table names",
            where=place_of(table, source),
            help=f"write `{table.name}`",
        )
    refuse_others(table, frozenset({"this"}), source)
    return table.name


def _target(table: exp.Expr, source: str) -> tuple[str, str]:
    """The name of a table to change, and what the statement calls it."""
    bare = table.copy()
    bare.set("alias", None)
    name, alias = _table_name(bare, source), table.args.get("alias")
    if alias is None:
        return name, name
    if not isinstance(alias.this, exp.Identifier) or alias.args.get("columns"):
        raise unsupported(table, source, "give the table a plain name")
    return name, alias.name


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
                _refuse_second_key(key, item, source)
                key.extend(part.name for part in item.expressions)
            case _:
                raise BadDefinition(
                    f"`{item.sql(DIALECT)}` is not supported in CREATE TABLE", where=place_of(item, source)
                )
    cluster_by, properties = _properties(tree, source)
    properties |= _column_comments(tree.this)
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


def _refuse_second_key(key: list[str], item: exp.Expr, source: str) -> None:
    if key:
        raise BadDefinition(
            "a table has one PRIMARY KEY",
            where=place_of(item, source),
            help="write PRIMARY KEY (a, b) behind the columns if the key is both of them",
        )


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
                _refuse_second_key(key, item, source)
                key.append(item.name)
            case exp.CommentColumnConstraint():
                pass
            case other:
                raise BadDefinition(
                    f"column {item.name!r}: `{other.sql(DIALECT)}` is not supported", where=place_of(item, source)
                )
    return Column(item.name, kind.sql(DIALECT).lower() if not kind.expressions else kind.sql(DIALECT), nullable)


def _column_comments(columns: exp.Schema) -> dict[str, str]:
    """`comment.<column>`: what is said about a column is kept with what is said about the table."""
    found = [(item, item.find(exp.CommentColumnConstraint)) for item in columns.expressions]
    return {f"comment.{item.name}": comment.name for item, comment in found if comment is not None}


_INSTEAD: dict[type[exp.Expr], str] = {
    exp.PartitionedByProperty: "CLUSTER BY (column, ...) sorts a table's files, so that conditions skip them",
    exp.LocationProperty: "a warehouse places the files of its tables itself",
    exp.FileFormatProperty: "tables are Delta tables: leave USING out, or write USING delta",
}


def _properties(tree: exp.Create, source: str) -> tuple[list[str], dict[str, str]]:
    """The clustering columns, and what is only kept; every property is an exp.Property, so that one comes last."""
    cluster_by: list[str] = []
    properties: dict[str, str] = {}
    holder = tree.args.get("properties")
    for item in holder.expressions if holder else []:
        match item:
            case exp.Cluster() | exp.ClusterProperty():
                cluster_by = [part.name for part in item.expressions]
            case exp.FileFormatProperty() if item.name.lower() == "delta" and not item.args.get("hive_format"):
                pass
            case exp.SchemaCommentProperty():
                properties["comment"] = item.name
            case exp.Property() if type(item) is exp.Property:
                properties[item.name] = item.args["value"].name
                _refuse_views_property(item.name, properties[item.name], place_of(tree, source))
            case _:
                raise UnsupportedStatement(
                    f"`{item.sql(DIALECT) or type(item).__name__}` is not supported in CREATE TABLE",
                    where=place_of(tree, source),
                    help=_INSTEAD.get(type(item)),
                )
    return cluster_by, properties


def _refuse_views_property(name: str, value: str, where: Place | None) -> None:
    """What is said of views by a property cannot be said of tables."""
    if name == "matview.viewgroup" and value.casefold() != BASE:
        raise TableInViewgroup(f"a base table is in viewgroup {BASE}, not in {value} (Rule 9)", where=where)
    if name.startswith(OWN_PREFIX) and name != "matview.viewgroup":
        raise BadDefinition(f"{name!r} is no property of a table", where=where, help="leave it out, or make a view")


def _drop(tree: exp.Drop, source: str) -> st.DropTable:
    tables = tree.args.get("tables") or [tree.this]
    if len(tables) != 1:
        raise unsupported(tree, source)
    name = _table_name(tables[0], source)
    return st.DropTable(name, bool(tree.args.get("exists")), bool(tree.args.get("cascade")))


_NO_NAMES: tuple[str, ...] = ()


def _insert(tree: exp.Insert, source: str) -> st.Insert:
    target, columns = tree.this, _NO_NAMES
    if isinstance(target, exp.Schema):
        target, columns = target.this, tuple(part.name for part in target.expressions)
    query = tree.expression
    if not isinstance(query, exp.Query | exp.Values) or (columns and tree.args.get("by_name")):
        raise unsupported(tree, source)
    if tree.args.get("by_name"):
        columns = _output_names(query, source)
    _refuse_twice(columns, tree, source)
    return st.Insert(_table_name(target, source), columns, inherit(query, tree.args.get("with_"), source))


def _output_names(query: exp.Expr, source: str) -> tuple[str, ...]:
    """What BY NAME goes by: each output of the query is a column or has a name of its own."""
    outputs = query.selects if isinstance(query, exp.Query) else []
    named = [item for item in outputs if isinstance(item, exp.Alias | exp.Column) and not item.is_star]
    if not named or len(named) != len(outputs):
        raise unsupported(query, source, "INSERT ... BY NAME needs a query whose columns all have names, without `*`")
    return tuple(item.output_name for item in named)


def _refuse_twice(names: Iterable[str], tree: exp.Expr, source: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise SqlSyntaxError(f"column {name!r} is assigned twice", where=place_of(tree, source))
        seen.add(name.casefold())


def _column_name(item: exp.Expr, alias: str, source: str) -> str:
    """The column of the target that an assignment names; a field of a struct is none."""
    if not isinstance(item, exp.Column) or not isinstance(item.this, exp.Identifier):
        raise SqlSyntaxError(f"`{item.sql(DIALECT)}` is no column to assign to", where=place_of(item, source))
    if item.args.get("db") or item.table.casefold() not in ("", alias.casefold()):
        raise unsupported(item, source, f"assign to a whole column of {alias}")
    return item.name


def _assignments(items: list[exp.Expr], alias: str, source: str) -> Mapping[str, exp.Expr] | st.SetAll:
    if len(items) == 1 and isinstance(items[0], exp.Star):
        return st.SetAll()
    made: list[tuple[str, exp.Expr]] = []
    for item in items:
        if not isinstance(item, exp.EQ):
            raise SqlSyntaxError(f"`{item.sql(DIALECT)}` is no assignment", where=place_of(item, source))
        made.append((_column_name(item.this, alias, source), item.expression))
    _refuse_twice([name for name, _ in made], items[-1], source)
    return dict(made)


def _update(tree: exp.Update, source: str) -> st.Update:
    name, alias = _target(tree.this, source)
    if not tree.expressions:
        raise SqlSyntaxError(
            "UPDATE sets nothing", where=place_of(tree.this, source), help="UPDATE t SET c = 1 WHERE ..."
        )
    assignments = _assignments(tree.expressions, alias, source)
    if isinstance(assignments, st.SetAll):
        raise unsupported(tree, source)
    outer = tree.args.get("with_")
    values = {column: inherit(value, outer, source) for column, value in assignments.items()}
    return st.Update(name, alias, values, _condition(tree, source))


def _truncate(tree: exp.TruncateTable, source: str) -> st.Delete:
    name = _table_name(tree.expressions[0], source)
    return st.Delete(name, name, None)


def _condition(tree: exp.Expr, source: str) -> exp.Expr | None:
    where = tree.args.get("where")
    return inherit(where.this, tree.args.get("with_"), source) if where else None


def _delete(tree: exp.Delete, source: str) -> st.Delete:
    return st.Delete(*_target(tree.this, source), _condition(tree, source))


def _merge(tree: exp.Merge, source: str) -> st.Merge:
    if tree.args.get("on") is None:
        raise SqlSyntaxError("MERGE needs ON", where=place_of(tree, source))
    name, alias = _target(tree.this, source)
    outer, using = tree.args.get("with_"), tree.args["using"]
    on, whens = (inherit(tree.args[part], outer, source) for part in ("on", "whens"))
    clauses = tuple(_when(when, alias, source) for when in whens.expressions)
    return st.Merge(name, alias, inherit(_queried(using, outer), outer, source), using.alias_or_name, on, clauses)


def _queried(using: exp.Expr, outer: exp.With | None) -> exp.Expr:
    """`USING c`, where WITH defines c, is USING (SELECT * FROM c): a query that the WITH can stand in."""
    if outer is None or not isinstance(using, exp.Table):
        return using
    return exp.select("*").from_(using.copy()).subquery(using.alias_or_name)


def _when(when: exp.When, alias: str, source: str) -> st.WhenMatched | st.WhenNotMatched:
    condition, then = when.args.get("condition"), when.args["then"]
    of_source, of_target = not when.args.get("source"), bool(when.args.get("matched") or when.args.get("source"))
    match then:
        case exp.Insert() if not of_target:
            return st.WhenNotMatched(condition, _merge_values(then, alias, source))
        case exp.Update() if of_target:
            refuse_others(then, frozenset({"expressions"}), source)
            return st.WhenMatched(condition, _assignments(then.expressions, alias, source), of_source)
        case exp.Var() if then.name.upper() == "DELETE" and of_target:
            return st.WhenMatched(condition, None, of_source)
    raise unsupported(when, source)


def _merge_values(then: exp.Insert, alias: str, source: str) -> Mapping[str, exp.Expr] | st.SetAll:
    if isinstance(then.this, exp.Star):
        return st.SetAll()
    if not isinstance(then.this, exp.Tuple) or not isinstance(then.expression, exp.Tuple):
        raise unsupported(then, source, "name the columns: INSERT (column, ...) VALUES (value, ...)")
    names = [_column_name(part, alias, source) for part in then.this.expressions]
    values = then.expression.expressions
    if len(names) != len(values):
        raise SqlSyntaxError(
            f"INSERT names {len(names)} columns and gives {len(values)} values", where=place_of(then, source)
        )
    _refuse_twice(names, then, source)
    return dict(zip(names, values, strict=True))
