"""Signed bags: rows with a weight, and what the rules do with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Aggregate, Filter, Node, Project, Repeat, Semi, UnionAll
from matview.algebra.scalars import column, conjunction, number, same

KEY_PREFIX = "__key."


def kept(names: Iterable[str]) -> tuple[tuple[str, exp.Expr], ...]:
    """Columns as they are."""
    return tuple((name, column(name)) for name in names)


def columns(signed: Node) -> tuple[str, ...]:
    """The columns of a signed bag, without its weight."""
    return tuple(name for name in signed.names if name != WEIGHT)


def only(node: Node, names: Sequence[str]) -> Node:
    """Some of the columns, duplicates kept."""
    return node if tuple(names) == node.names else Project(node, kept(names))


def weighted(node: Node, weight: int = 1) -> Node:
    """Plain rows as a signed bag, each `weight` times."""
    return Project(node, (*kept(node.names), (WEIGHT, number(weight))))


def negated(signed: Node) -> Node:
    return Project(signed, (*kept(columns(signed)), (WEIGHT, exp.Neg(this=column(WEIGHT)))))


def together(*parts: Node | None) -> Node | None:
    """The sum of signed bags; columns by position. None is the empty bag."""
    there = tuple(part for part in parts if part is not None)
    return UnionAll(there) if len(there) > 1 else next(iter(there), None)


def before(node: Node, delta: Node | None) -> Node:
    """E = E' - dE, as a signed bag."""
    return weighted(node) if delta is None else UnionAll((weighted(node), negated(delta)))


def total(name: str) -> exp.Expr:
    """The sum of a column of whole numbers, as a whole number."""
    return exp.cast(exp.Coalesce(this=exp.Sum(this=column(name)), expressions=[number(0)]), "bigint")


def net(signed: Node) -> Node:
    """At most one entry per distinct row."""
    summed = Aggregate(signed, columns(signed), ((WEIGHT, total(WEIGHT)),))
    return Filter(summed, nonzero(WEIGHT))


def nonzero(name: str) -> exp.Expr:
    return exp.NEQ(this=column(name), expression=number(0))


def rows(signed: Node) -> Node:
    """A signed bag whose weights add up to no less than nothing, as plain rows."""
    return Repeat(net(signed), WEIGHT)


def keys(signed: Node, names: Sequence[str]) -> Node:
    """The distinct values of some columns, under names of their own (`__key.` before them)."""
    distinct = Aggregate(only(signed, names), tuple(names))
    return Project(distinct, tuple((KEY_PREFIX + name, column(name)) for name in names))


def among(node: Node, found: Node, names: Sequence[str]) -> Node:
    """The rows whose columns `names` are among `keys(...)`; without any names, all of them."""
    if not names:
        return node
    on = conjunction(*(same(column(name), column(KEY_PREFIX + name)) for name in names))
    return Semi("semi", node, found, on)


def sign(condition: exp.Expr) -> exp.Expr:
    """1 where it holds, else 0."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=number(1))], default=number(0))


def difference(new: Node, old: Node) -> Node:
    """new - old, net: both are plain rows."""
    return net(UnionAll((weighted(new), weighted(old, -1))))
