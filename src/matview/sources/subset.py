"""The part of SQL that a source of weaker types answers just as Spark would: joins and selections over given values.

Everything else is computed in the warehouse. What would compare texts by the source's collation, add decimals as
floating numbers or divide as the source sees fit is refused, not pushed down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from matview.remembered import Remembered
from matview.sources.state import quoted
from matview.sources.types import ARRAY, DECIMAL, PLAIN

STRUCTURE = (
    *(exp.Select, exp.From, exp.Join, exp.Where, exp.Table, exp.TableAlias, exp.Subquery, exp.With, exp.CTE, exp.Union),
    *(exp.Identifier, exp.Column, exp.Alias, exp.Paren, exp.DataType, exp.DataTypeParam, exp.Distinct, exp.Group),
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


Moment = Callable[[date | datetime], exp.Expr]
"""How the source writes a date, or a time without zone."""
Absent = Callable[[str], exp.Expr]
"""How the source writes a null of a Spark type."""


def bare(_: str) -> exp.Expr:
    return exp.null()


def asked(query: exp.Query, tables: Mapping[str, Mapping[str, str]], literal: Moment, absent: Absent = bare) -> Asked:
    """The query over tables with these columns and Spark types; raises where Spark could answer otherwise.

    Remembered, since every round asks the same again.
    """
    types = tuple((name, tuple(columns.items())) for name, columns in tables.items())
    key = (query.sql("spark"), types, literal, absent)
    return _KNOWN.get(key, lambda: asked_anew(query, tables, literal, absent))


_KNOWN = Remembered[Asked](200)


def asked_anew(query: exp.Query, tables: Mapping[str, Mapping[str, str]], literal: Moment, absent: Absent) -> Asked:
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
    return Asked(cast(exp.Query, tree.transform(lambda node: plain(node, literal, absent))), columns)


def spark_type(node: exp.Expr) -> str:
    kind = node.type
    return kind.sql("spark").lower().replace(" ", "") if kind is not None else "unknown"


def families(operands: Sequence[exp.Expr]) -> set[str]:
    """Types of one family are compared by value. A floating number and another one are not: Spark makes a floating
    number of the other, sources look at all of its digits; with a number that is written out it makes no difference."""
    given = [part for part in operands if not isinstance(part, exp.Null)]
    others = {family(part) for part in given if not is_number(part)}
    return others if others & {"number", "floating number"} else {family(part) for part in given}


def is_number(node: exp.Expr) -> bool:
    """It is written out."""
    inner = node.unnest()
    inner = inner.this if isinstance(inner, exp.Neg) else inner
    return isinstance(inner, exp.Literal) and not inner.is_string


def family(node: exp.Expr) -> str:
    kind = spark_type(node)
    if kind in ("double", "float"):
        return "floating number"
    return "number" if kind in INTEGERS or kind.startswith("decimal") else kind


def check(node: exp.Expr) -> None:
    """Aggregates are not among what is allowed, so that grouping is another way to say DISTINCT."""
    if isinstance(node, exp.Join) and {node.side, node.kind} - INNER:
        raise refused(node, "that join")
    if isinstance(node, exp.Cast):
        check_cast(node)
    elif isinstance(node, SUMS):
        if any(spark_type(part) not in INTEGERS for part in operands(node)):
            raise refused(node, "arithmetic with what is no integer")
    elif isinstance(node, COMPARISONS):
        found = families(operands(node))
        if len(found) > 1 or node.args.get("query") or any(ARRAY.match(one) for one in found):
            raise refused(node, f"a comparison of {' and '.join(sorted(found))}")
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


def plain(node: exp.Expr, literal: Moment, absent: Absent) -> exp.Expr:
    """Casts that have done their part, that of saying the type, taken out."""
    if not isinstance(node, exp.Cast):
        return node
    if isinstance(node.this, exp.Null):
        return absent(spark_type(node))
    moment = moment_of(node)
    return literal(moment) if moment is not None else node.this


def refused(node: exp.Expr, what: str) -> UnsupportedStatement:
    return UnsupportedStatement(
        f"the source is not asked for {what}: {node.sql('spark')[:200]}",
        help="it could answer otherwise than Spark; replicate the table, and the warehouse computes it",
    )
