"""Values of any type in a form that Spark compares, orders, joins and groups by as one does by equality.

    map       its entries, each (key, comparable value), in the order of keys: Spark has no order of maps, and loses
              nulls inside maps that it groups by
    variant   its text
    array     its elements in that form
    struct    its fields in that form
    others    themselves

Whoever groups by a form carries the value beside it: the form of -0.0 is that of 0.0, and a map has another type.
"""

from __future__ import annotations

from functools import cache

from sqlglot import exp

from matview.versions.text import quoted

_ODD = (exp.DType.MAP, exp.DType.VARIANT)
_FLOATING = (exp.DType.FLOAT, exp.DType.DOUBLE)


def comparable_sql(sql: str, kind: str) -> str:
    """The form of a value, given as SQL, of a Spark type."""
    return _form(sql, _parsed(kind), 0)


def is_itself(kind: str) -> bool:
    """Whether grouping by a value of that type leaves it as it was."""
    return not _has(_parsed(kind), (*_ODD, *_FLOATING))


@cache
def _parsed(kind: str) -> exp.DataType:
    return exp.DataType.build(kind, dialect="spark")


def _has(kind: exp.DataType, wanted: tuple[exp.DType, ...]) -> bool:
    return any(part.this in wanted for part in kind.find_all(exp.DataType))


def _form(sql: str, kind: exp.DataType, depth: int) -> str:
    if not _has(kind, _ODD):
        return sql
    match kind.this:
        case exp.DType.MAP:
            return _entries(sql, kind.expressions[0], kind.expressions[1], depth)
        case exp.DType.ARRAY:
            each = f"__e{depth}"
            return f"transform({sql}, {each} -> {_form(each, kind.expressions[0], depth + 1)})"
        case exp.DType.STRUCT:
            fields = (f"{_form(f'({sql}).{quoted(f.name)}', f.kind, depth)}" for f in kind.expressions)
            return f"if({sql} IS NULL, NULL, struct({', '.join(fields)}))"
        case _:
            return f"to_json({sql})"


def _entries(sql: str, key: exp.DataType, value: exp.DataType, depth: int) -> str:
    each = f"__e{depth}"
    pair = f"struct({_form(f'{each}.key', key, depth + 1)} AS k, {_form(f'{each}.value', value, depth + 1)} AS v)"
    return f"array_sort(transform(map_entries({sql}), {each} -> {pair}))"
