"""The comparisons of a query that every row of one table must pass to matter: what files may be skipped by.

Only conjuncts that reject nulls count: of the WHERE of the very SELECT in whose FROM the reference stands, and of ON in
its inner joins. Rows that fail one contribute nothing, even where an outer join would put nulls in their place: those
nulls fail as well. When in doubt there is no predicate; a query is right without any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Literal

from sqlglot import exp

from matview.algebra.schema import Schema

Comparison = Literal["=", "<", "<=", ">", ">="]
Value = int | Decimal | str | date | datetime

LONGEST_LIST = 100


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: its Spark SQL, and the value to compare statistics with."""

    sql: str
    value: Value


@dataclass(frozen=True, slots=True)
class Predicate:
    """`column comparison constant`; several constants (only with `=`) are an IN list. Null fails it."""

    column: str
    comparison: Comparison
    constants: tuple[Constant, ...]

    def __post_init__(self) -> None:
        if not self.constants or (len(self.constants) > 1 and self.comparison != "="):
            raise ValueError(f"one constant, or several with '=': {self}")


class Kind(Enum):
    """Types of columns whose order Spark, Parquet and Python agree about, each with the constants it compares to."""

    INTEGRAL = "integral"
    DECIMAL = "decimal"
    FLOATING = "floating"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"


_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"), Kind.INTEGRAL),
    **dict.fromkeys(("decimal", "dec", "numeric"), Kind.DECIMAL),
    **dict.fromkeys(("float", "real", "double"), Kind.FLOATING),
    **dict.fromkeys(("string", "varchar"), Kind.STRING),
    **dict.fromkeys(("timestamp", "timestamp_ltz", "timestamp_ntz"), Kind.TIMESTAMP),
    "date": Kind.DATE,
}

_FLIPPED: dict[Comparison, Comparison] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def kind_of(spark_type: str) -> Kind | None:
    """The kind of a Spark type; None for those that do not compare simply (char, collated strings, nested types)."""
    return _KINDS.get(spark_type.split("(")[0].strip().lower())


def sargable(reference: exp.Table, schema: Schema) -> tuple[Predicate, ...]:
    """The predicates on `reference`, a table of that schema, in the query in which it stands."""
    select = _select_of(reference)
    if select is None:
        return ()
    names = [source.alias_or_name.casefold() for source in _sources(select)]
    own = reference.alias_or_name.casefold()
    if names.count(own) != 1:
        return ()

    def resolve(node: exp.Expr | None) -> str | None:
        """The schema's name for a column that is surely the reference's."""
        if not isinstance(node, exp.Column) or node.args.get("db") or not isinstance(node.this, exp.Identifier):
            return None
        if (node.table.casefold() or own) != own or (not node.table and len(names) > 1):
            return None
        column = schema.column(node.name)
        return column.name if column else None

    found = (p for conjunct in _conjuncts(select) for p in _predicates(conjunct, resolve))
    return tuple(p for p in found if _comparable(p, schema))


# where to look --------------------------------------------------------------------------------------------------------


def _select_of(reference: exp.Table) -> exp.Select | None:
    """The SELECT that names the reference in its FROM, unless something stands between its rows and the WHERE."""
    clause = reference.parent
    select = clause.parent if isinstance(clause, exp.From | exp.Join) else None
    if not isinstance(select, exp.Select) or any(select.args.get(part) for part in ("sample", "pivots", "match")):
        return None
    alias = reference.args.get("alias")
    renamed = alias is not None and alias.args.get("columns")
    carries = any(reference.args.get(part) for part in ("sample", "pivots", "joins", "laterals"))
    return None if renamed or carries else select


def _sources(select: exp.Select) -> list[exp.Expr]:
    first = select.args.get("from_")
    joins = select.args.get("joins") or []
    return [*([first.this] if first else []), *(j.this for j in joins), *(select.args.get("laterals") or [])]


def _conjuncts(select: exp.Select) -> Iterator[exp.Expr]:
    where = select.args.get("where")
    if where:
        yield from _split(where.this)
    for join in select.args.get("joins") or []:
        if join.kind in ("", "INNER") and not join.side and not join.method and join.args.get("on"):
            yield from _split(join.args["on"])


def _split(condition: exp.Expr) -> Iterator[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from _split(condition.left)
        yield from _split(condition.right)
    else:
        yield condition


# what to find there ---------------------------------------------------------------------------------------------------


def _predicates(conjunct: exp.Expr, resolve: Callable[[exp.Expr | None], str | None]) -> Iterator[Predicate]:
    column = resolve(conjunct.this) if isinstance(conjunct, exp.Between | exp.In) else None
    if isinstance(conjunct, exp.Between) and column and not conjunct.args.get("symmetric"):
        yield from _compared(column, ">=", [conjunct.args["low"]])
        yield from _compared(column, "<=", [conjunct.args["high"]])
    elif isinstance(conjunct, exp.In) and column and 0 < len(conjunct.expressions) <= LONGEST_LIST:
        yield from _compared(column, "=", conjunct.expressions)
    elif comparison := _COMPARISONS.get(type(conjunct)):
        left, right = conjunct.this, conjunct.args.get("expression")
        if column := resolve(left):
            yield from _compared(column, comparison, [right])
        elif column := resolve(right):
            yield from _compared(column, _FLIPPED[comparison], [left])


def _compared(column: str, comparison: Comparison, nodes: list[exp.Expr | None]) -> Iterator[Predicate]:
    constants = [constant(node) for node in nodes]
    if all(constants):
        yield Predicate(column, comparison, tuple(c for c in constants if c is not None))


def constant(node: exp.Expr | None) -> Constant | None:
    value = _value(node.unnest()) if node is not None else None
    return None if node is None or value is None else Constant(node.unnest().sql("spark"), value)


def _value(node: exp.Expr) -> Value | None:
    """The value of a literal; no Booleans, no doubles, no casts but those that spell a literal."""
    match node:
        case exp.Literal(is_string=True):
            return str(node.this)
        case exp.Literal():
            return _number(str(node.this))
        case exp.Neg(this=exp.Literal(is_string=False)):
            number = _number(str(node.this.this))
            return None if number is None else -number
        case exp.Cast(this=exp.Literal()):
            return _cast_value(node)
        case _:
            return None


def _number(text: str) -> int | Decimal | None:
    if re.fullmatch(r"\d+", text):
        return int(text)
    return Decimal(text) if re.fullmatch(r"\d*\.\d+|\d+\.", text) else None


def _cast_value(cast: exp.Cast) -> Value | None:
    """`DATE '...'`, `TIMESTAMP '...'` and `5L` are casts by the time they are parsed."""
    text, to = str(cast.this.this), cast.to.this
    if cast.this.is_string:
        if to == exp.DType.DATE:
            return as_date(text)
        return as_timestamp(text) if to in exp.DataType.TEMPORAL_TYPES else None
    number = _number(text)
    return number if to == exp.DType.BIGINT and isinstance(number, int) and number < 2**63 else None


def as_date(text: str) -> date | None:
    """A date written in full, year first; other spellings are left to Spark."""
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None
    except ValueError:
        return None


def as_timestamp(text: str) -> datetime | None:
    """A date and a time written in full, without a zone."""
    try:
        full = re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", text)
        return datetime.fromisoformat(text) if full else None
    except ValueError:
        return None


def _comparable(predicate: Predicate, schema: Schema) -> bool:
    """Spark compares without casting the column, which could fail on rows that no reader of this version sees."""
    column = schema.column(predicate.column)
    kind = kind_of(column.type) if column else None
    return all(_compares(kind, constant.value) for constant in predicate.constants)


def _compares(kind: Kind | None, value: Value) -> bool:
    match kind:
        case Kind.INTEGRAL | Kind.DECIMAL | Kind.FLOATING:
            return isinstance(value, int | Decimal)
        case Kind.STRING:
            return isinstance(value, str)
        case Kind.DATE:
            return type(value) is date or (isinstance(value, str) and as_date(value) is not None)
        case Kind.TIMESTAMP:
            return isinstance(value, datetime)
        case None:
            return False
