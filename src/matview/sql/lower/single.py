"""Whether a relation has at most one row, or one for each value of some columns: what a scalar subquery must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from matview.algebra.conditions import alike
from matview.algebra.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    Outer,
    Project,
    Scan,
    Semi,
    SetOp,
    TopK,
    Values,
    Window,
)
from matview.algebra.scalars import columns_in, conjuncts, type_of
from matview.algebra.schema import Field
from matview.sql.lower.functions import bare

Fixed = frozenset[str]
"""Columns that have one value each."""


def is_one_row(node: Node) -> bool:
    """Exactly one row, whatever the tables hold: an aggregate without GROUP BY, or no FROM at all."""
    match node:
        case Project(input=inner):
            return is_one_row(inner)
        case Aggregate(keys=()):
            return True
        case Values(rows=rows):
            return len(rows) == 1
    return False


def is_single(node: Node, fixed: Fixed = frozenset()) -> bool:
    """At most one row where the columns `fixed` have one value each; when in doubt, no."""
    match node:
        case Values(rows=rows):
            return len(rows) <= 1
        case Scan(key=key):
            return bool(key) and set(key) <= fixed
        case Project(inner):
            return is_single(inner, _before(node, fixed))
        case Filter(inner, condition):
            return is_single(inner, _with_equal(determined(inner, fixed), conjuncts(condition), (inner,)))
        case Aggregate(inner, keys):
            return set(keys) <= determined(inner, fixed & set(keys)) or is_single(inner, fixed & set(keys))
        case Join():
            return set(node.names) <= determined(node, fixed)
    return _is_single_more(node, fixed)


def is_single_where(node: Node, around: Node, conditions: Sequence[exp.Expr]) -> bool:
    """At most one row for each row of the relation around, to which the conditions tie it."""
    known = frozenset(around.names)
    return is_single(node, _with_equal(known, conditions, (node, around)) - known)


def _is_single_more(node: Node, fixed: Fixed) -> bool:
    match node:
        case TopK(inner, _, limit):
            return limit <= 1 or is_single(inner, fixed & set(inner.names))
        case Window(inner, partition, functions):
            numbered = any(name in fixed and _numbers_rows(e) for name, e in functions)
            return (numbered and set(partition) <= fixed) or is_single(inner, fixed & set(inner.names))
        case Semi(left=left) | SetOp(left=left):
            return is_single(left, fixed & set(left.names))
        case Outer("left", left, right, on):
            if not is_single(left, fixed & set(left.names)):
                return False
            known = _with_equal(frozenset(left.names) | fixed, conjuncts(on), (left, right))
            return is_single(right, known & set(right.names))
    return False


def _numbers_rows(function: exp.Expr) -> bool:
    return isinstance(function, exp.Window) and isinstance(function.this, exp.RowNumber)


def determined(node: Node, fixed: Fixed) -> Fixed:
    """The columns that have one value where those of `fixed` do."""
    match node:
        case Filter(inner, condition):
            return _with_equal(determined(inner, fixed), conjuncts(condition), (inner,))
        case Project(inner, outputs):
            known = determined(inner, _before(node, fixed))
            return fixed | {name for name, e in outputs if columns_in(e) <= known}
        case Join(parts, on):
            return _joined(parts, on, fixed)
        case Scan(key=key) if key and set(key) <= fixed:
            return frozenset(node.names)
        case Window(inner) | TopK(inner) | Semi(left=inner):
            return fixed | determined(inner, fixed & set(inner.names))
    return frozenset(node.names) if _all_fixed(node, fixed) else fixed


def _all_fixed(node: Node, fixed: Fixed) -> bool:
    return not isinstance(node, Filter | Project | Join | Window | TopK | Semi) and is_single(node, fixed)


def _joined(parts: Sequence[Node], on: tuple[exp.Expr, ...], fixed: Fixed) -> Fixed:
    known, before = fixed, None
    while known != before:
        before = known
        for part in parts:
            own = known & set(part.names)
            known |= frozenset(part.names) if is_single(part, own) else determined(part, own)
        known = _with_equal(known, on, parts)
    return known


def _before(node: Project, fixed: Fixed) -> Fixed:
    """The input's columns whose values are known from the output's."""
    return frozenset(e.name for name, e in node.outputs if name in fixed and isinstance(e, exp.Column))


def _with_equal(fixed: Fixed, conditions: Sequence[exp.Expr], inputs: Sequence[Node]) -> Fixed:
    """What equality with something fixed, or with a constant, fixes as well."""
    given = {f.name: f for node in inputs for f in node.fields}
    equalities = [c for c in conditions if isinstance(c, exp.EQ | exp.NullSafeEQ)]
    pairs = [(bare(c.left), bare(c.right), isinstance(c, exp.NullSafeEQ)) for c in equalities]
    known, before = fixed, None
    while known != before:
        before = known
        for left, right, is_tie in [*pairs, *((b, a, is_tie) for a, b, is_tie in pairs)]:
            if not isinstance(left, exp.Column) or not columns_in(right) <= known:
                continue
            if _tells(left, right, given) or (is_tie and _both_unknown(left, right, given)):
                known |= {left.name}
    return known


def _both_unknown(one: exp.Expr, other: exp.Expr, given: Mapping[str, Field]) -> bool:
    """Two columns of which only Spark knows the type: under `<=>`, copies of one, by which a subquery is tied."""
    return all(isinstance(side, exp.Column) and not given[side.name].type for side in (one, other))


def _tells(column: exp.Column, value: exp.Expr, given: Mapping[str, Field]) -> bool:
    """Whether only one value of the column equals the other: a comparison may convert both first ('01' = 1)."""
    return alike(given[column.name].type, type_of(value, given))
