"""The questions of one site as one query (M4).

    SELECT 0 AS n, a AS c0_0, b AS c0_1, CAST(NULL AS int) AS c1_0 FROM ... UNION ALL SELECT 1, NULL, NULL, e FROM ...

Columns have short names on the way: some databases cut names off after 63 letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from matview.algebra.nodes import (
    WEIGHT,
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Outer,
    Project,
    Scan,
    Stored,
    UnionAll,
)
from matview.algebra.scalars import column, number, renamed
from matview.algebra.schema import Field
from matview.plan.sites.cut import Ask

NUMBER = "n"
"""The column that says whose answer a row belongs to."""


@dataclass(frozen=True)
class Question:
    """One query for several questions, and the columns of each answer in it; numbered where there are several."""

    node: Node
    columns: tuple[tuple[str, ...], ...]

    @property
    def is_numbered(self) -> bool:
        return len(self.columns) > 1


def question(asks: Sequence[Ask]) -> Question:
    columns = tuple(tuple(f"c{i}_{j}" for j in range(len(ask.node.names))) for i, ask in enumerate(asks))
    parts = [_part(asks, i, columns) for i in range(len(asks))]
    return Question(parts[0] if len(parts) == 1 else UnionAll(tuple(parts)), columns)


def _part(asks: Sequence[Ask], own: int, columns: Sequence[Sequence[str]]) -> Node:
    """The rows of one answer, with nulls in place of the others'."""
    short = _Short()
    node = short.of(asks[own].node)
    outputs: list[tuple[str, exp.Expr]] = [(NUMBER, number(own))] if len(asks) > 1 else []
    for i, ask in enumerate(asks):
        values = map(column, node.names) if i == own else map(_null, ask.node.fields)
        outputs += zip(columns[i], values, strict=True)
    return Project(node, tuple(outputs))


def _null(field: Field) -> exp.Expr:
    return exp.cast(exp.null(), field.type, dialect="spark")


def sent_columns(width: int) -> tuple[str, ...]:
    """What the columns of a relation that is sent along are called at the site."""
    return tuple(f"k{n}" for n in range(width))


class _Short:
    """Expressions that sites are asked, with short names for columns; each name has one, wherever it stands."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {WEIGHT: WEIGHT}

    def of(self, node: Node) -> Node:
        match node:
            case Scan():
                return self._scan(node)
            case Change(scan):
                return Change(self._scan(scan))
            case Stored(name, fields):
                return Scan(name, sent_columns(len(fields)), tuple(map(self._field, fields)))
            case Filter(input, condition):
                return Filter(self.of(input), self._expression(condition))
            case Project(input, outputs):
                return Project(self.of(input), tuple((self._name(n), self._expression(e)) for n, e in outputs))
            case Aggregate(input, keys, ()):
                return Aggregate(self.of(input), tuple(map(self._name, keys)))
            case Join(parts, on):
                return Join(tuple(map(self.of, parts)), tuple(map(self._expression, on)))
            case Outer(kind, left, right, on):
                return Outer(kind, self.of(left), self.of(right), self._expression(on))
            case UnionAll(parts):
                return UnionAll(tuple(map(self.of, parts)))
        raise AssertionError(f"no site is asked for a {type(node).__name__}")

    def _scan(self, scan: Scan) -> Scan:
        return replace(scan, fields=tuple(map(self._field, scan.fields)), key=tuple(map(self._name, scan.key)))

    def _field(self, field: Field) -> Field:
        return replace(field, name=self._name(field.name))

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"f{len(self._names)}")

    def _expression(self, expression: exp.Expr) -> exp.Expr:
        return renamed(expression, self._names)
