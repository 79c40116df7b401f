"""The part of SQL that a source of weaker types answers just as Spark would: joins and selections over given values.

Everything else is computed in the warehouse. What would compare texts by the source's collation, add decimals as
floating numbers or divide as the source sees fit is refused, not pushed down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import cast

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify_columns import qualify_columns, validate_qualify_columns
from sqlglot.optimizer.qualify_tables import qualify_tables
from sqlglot.schema import MappingSchema

from matview.errors import UnsupportedStatement
from matview.sources.state import quoted
from matview.sources.types import ARRAY, DECIMAL, PLAIN

STRUCTURE = (
    *(exp.Select, exp.From, exp.Join, exp.Where, exp.Table, exp.TableAlias, exp.Subquery, exp.With, exp.CTE, exp.Union),
    *(exp.Identifier, exp.Column, exp.Alias, exp.Paren, exp.DataType, exp.DataTypeParam, exp.Distinct),
)
CONDITIONS = (exp.And, exp.Or, exp.Not, exp.Is, exp.Null, exp.Boolean, exp.Literal, exp.Cast)
COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.In, exp.Between),
)
SUMS = (exp.Add, exp.Sub, exp.Mul, exp.Neg)

INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
INNER = frozenset({"", "INNER", "CROSS", "LEFT", "OUTER"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that the source may be sent: every column qualified, every date a literal of the source."""

    query: exp.Query
    columns: tuple[tuple[str, str], ...]
    """The names of what it answers, and their Spark types."""


def asked(
    query: exp.Query, tables: Mapping[str, Mapping[str, str]], literal: Callable[[date | datetime], exp.Expr]
) -> Asked:
    """The query over tables with these columns and Spark types; raises where Spark could answer otherwise."""
    schema = MappingSchema({name: dict(columns) for name, columns in tables.items()}, normalize=False, dialect="spark")
    try:
        tree = validate_qualify_columns(qualify_columns(qualify_tables(quoted(query), dialect="spark"), schema))
        tree = annotate_types(tree, schema, dialect="spark")
    except SqlglotError as error:
        raise UnsupportedStatement(f"the source cannot be asked this: {error}") from error
    columns = tuple((select.alias_or_name, spark_type(select)) for select in tree.selects)
    for node in tree.walk():
        check(node)
    for name, kind in columns:
        if kind not in PLAIN and not DECIMAL.match(kind) and not ARRAY.match(kind):
            raise refused(tree, f"{name}, whose type is {kind}")
    return Asked(cast(exp.Query, tree.transform(lambda node: plain(node, literal))), columns)


def spark_type(node: exp.Expr) -> str:
    kind = node.type
    return kind.sql("spark").lower().replace(" ", "") if kind is not None else "unknown"


def family(node: exp.Expr) -> str:
    """Types of one family are compared by value."""
    kind = spark_type(node)
    if kind in INTEGERS or kind in ("double", "float") or kind.startswith("decimal"):
        return "number"
    return kind


def check(node: exp.Expr) -> None:
    if isinstance(node, exp.Join) and {node.side, node.kind} - INNER:
        raise refused(node, "that join")
    if isinstance(node, exp.Cast):
        check_cast(node)
    elif isinstance(node, SUMS):
        if any(spark_type(part) not in INTEGERS for part in operands(node)):
            raise refused(node, "arithmetic with what is no integer")
    elif isinstance(node, COMPARISONS):
        families = {family(part) for part in operands(node) if not isinstance(part, exp.Null)}
        if len(families) > 1 or node.args.get("query") or any(ARRAY.match(one) for one in families):
            raise refused(node, f"a comparison of {' and '.join(sorted(families))}")
    elif not isinstance(node, STRUCTURE + CONDITIONS):
        raise refused(node, node.key.upper())


def operands(node: exp.Expr) -> list[exp.Expr]:
    parts = [value for value in node.args.values() if value is not None and value is not False]
    flat = [item for value in parts for item in (value if isinstance(value, list) else [value])]
    return [item for item in flat if isinstance(item, exp.Expr)]


def check_cast(node: exp.Cast) -> None:
    given, wanted = spark_type(node.this), spark_type(node)
    wider = given in INTEGERS and wanted in INTEGERS and rank(given) <= rank(wanted)
    if isinstance(node.this, exp.Null) or given == wanted or wider or moment_of(node) is not None:
        return
    raise refused(node, f"a cast from {given} to {wanted}")


def rank(integer: str) -> int:
    return ("tinyint", "smallint", "int", "bigint").index(integer)


def moment_of(node: exp.Cast) -> date | datetime | None:
    """The date or the time without zone that a cast of a text means."""
    if not isinstance(node.this, exp.Literal) or not node.this.is_string:
        return None
    read = {"date": date.fromisoformat, "timestamp_ntz": datetime.fromisoformat}.get(spark_type(node))
    try:
        found = None if read is None else read(node.this.this)
    except ValueError:
        return None
    return found if getattr(found, "tzinfo", None) is None else None


def plain(node: exp.Expr, literal: Callable[[date | datetime], exp.Expr]) -> exp.Expr:
    """Casts that have done their part, that of saying the type, taken out."""
    if not isinstance(node, exp.Cast):
        return node
    moment = moment_of(node)
    return literal(moment) if moment is not None else node.this


def refused(node: exp.Expr, what: str) -> UnsupportedStatement:
    return UnsupportedStatement(
        f"the source is not asked for {what}: {node.sql('spark')[:200]}",
        help="it could answer otherwise than Spark; replicate the table, and the warehouse computes it",
    )
