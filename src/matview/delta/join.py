"""d(E join F) = dE join F' + E' join dF - dE join dF, for joins of any width.

The last two terms are one: d(E join F) = dE join F' + (E' - dE) join dF. For R1 .. Rk that makes k terms, not 2^k - 1:

    d(R1 join .. join Rk) = sum over i of  (R1' - dR1) join .. join (Ri-1' - dRi-1) join dRi join Ri+1' join .. join Rk'

Each term begins with its change and goes on along the join's conditions, so that the rest is only looked up.
"""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Join, Node, Project
from matview.algebra.scalars import column, columns_in
from matview.delta.signed import before, columns, kept, together

Deltas = tuple[Node | None, ...]


def join_change(node: Join, deltas: Deltas) -> Node | None:
    return together(*(_term(node, deltas, i) for i, delta in enumerate(deltas) if delta is not None))


def _term(node: Join, deltas: Deltas, i: int) -> Node:
    """The rows that come and go because of the change of the i-th relation."""
    parts, weights = [], []
    for j, (part, delta) in enumerate(zip(node.parts, deltas, strict=True)):
        if j != i and (delta is None or j > i):
            parts.append(part)
            continue
        signed = delta if j == i else before(part, delta)
        assert signed is not None
        weights.append(f"{WEIGHT}.d" if j == i else f"{WEIGHT}.{j}")
        parts.append(Project(signed, (*kept(columns(signed)), (weights[-1], column(WEIGHT)))))
    first = parts.pop(i)
    product: exp.Expr = column(weights[0])
    for weight in weights[1:]:
        product = exp.Mul(this=product, expression=column(weight))
    joined = two_by_two(along(first, parts, node.on), node.on)
    return Project(joined, (*kept(node.names), (WEIGHT, product)))


def two_by_two(parts: tuple[Node, ...], on: tuple[exp.Expr, ...]) -> Node:
    """The join as joins of two, from the left: what two terms, or two views, have in common is then one expression."""
    joined, waiting = parts[0], on
    for part in parts[1:]:
        known = {*joined.names, *part.names}
        ready = tuple(condition for condition in waiting if columns_in(condition) <= known)
        waiting = tuple(condition for condition in waiting if condition not in ready)
        joined = Join((joined, part), ready)
    return joined


def along(first: Node, others: list[Node], on: tuple[exp.Expr, ...]) -> tuple[Node, ...]:
    """The relations in an order in which each is joined to those before it, where the conditions allow."""
    ordered, left = [first], list(others)
    known = set(first.names)
    while left:
        chosen = next((part for part in left if _connected(part, known, on)), left[0])
        left.remove(chosen)
        ordered.append(chosen)
        known |= set(chosen.names)
    return tuple(ordered)


def _connected(part: Node, known: set[str], on: tuple[exp.Expr, ...]) -> bool:
    own = set(part.names)
    return any(_joins(columns_in(condition), own, known) for condition in on)


def _joins(used: set[str], own: set[str], known: set[str]) -> bool:
    return bool(used & own) and bool(used & known) and used <= own | known
