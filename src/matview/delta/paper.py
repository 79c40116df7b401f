"""ADD(Q) and DEL(Q) as Figure 2 of paper M has them: the rows to add and the rows to delete, each a query of its own.

    ADD(R)         what came                DEL(R)         what went
    ADD(sel p E)   sel p ADD(E)             DEL(sel p E)   sel p DEL(E)
    ADD(proj A E)  proj A ADD(E)            DEL(proj A E)  proj A DEL(E)
    ADD(E join F)  ADD(E) join ADD(F)  +  ADD(E) join (F' - ADD(F))  +  (E' - ADD(E)) join ADD(F)
    DEL(E join F)  DEL(E) join DEL(F)  +  DEL(E) join (F' - ADD(F))  +  (E' - ADD(E)) join DEL(F)

with - for monus and + for the additive union. Every other operator (M16) has the positive and the negative part of its
change. A join of more than two is taken two by two, as the paper does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Change, Filter, Join, Node, Project, Repeat, Scan, SetOp, UnionAll
from matview.algebra.scalars import column, columns_in, number
from matview.delta.derive import change
from matview.delta.signed import columns, kept, net, together

Side = Literal["ADD", "DEL"]


def add(node: Node, changed: Collection[str]) -> Node | None:
    """The rows that come; None when none can."""
    return _side(node, changed, "ADD")


def delete(node: Node, changed: Collection[str]) -> Node | None:
    """The rows that go; None when none can."""
    return _side(node, changed, "DEL")


def _side(node: Node, changed: Collection[str], side: Side) -> Node | None:
    match node:
        case Scan():
            return _part(Change(node), side) if node.table in changed else None
        case Filter(input) | Project(input):
            inner = _side(input, changed, side)
            return None if inner is None else replace(node, input=inner)
        case Join():
            return _join(binary(node), changed, side)
    moved = change(node, changed)
    return None if moved is None else _part(moved, side)


def _part(signed: Node, side: Side) -> Node:
    """The positive or the negative part of a change, as rows."""
    sign = number(1) if side == "ADD" else number(-1)
    weight = exp.Mul(this=sign, expression=column(WEIGHT))
    turned = Project(net(signed), (*kept(columns(signed)), (WEIGHT, weight)))
    return Repeat(Filter(turned, exp.GT(this=column(WEIGHT), expression=number(0))), WEIGHT)


def _join(node: Join, changed: Collection[str], side: Side) -> Node | None:
    e, f = node.parts
    side_e, side_f = _side(e, changed, side), _side(f, changed, side)
    terms = (
        _joined(node, side_e, side_f),
        _joined(node, side_e, without_added(f, changed)),
        _joined(node, without_added(e, changed), side_f),
    )
    return together(*terms)


def _joined(node: Join, e: Node | None, f: Node | None) -> Node | None:
    return None if e is None or f is None else Join((e, f), node.on)


def without_added(node: Node, changed: Collection[str]) -> Node:
    """E' - ADD(E): what was there before and still is."""
    added = add(node, changed)
    return node if added is None else SetOp("except all", node, added)


def binary(node: Join) -> Join:
    """A join of two: the first ones together, and the last."""
    *first, last = node.parts
    if len(first) == 1:
        return node
    known = {name for part in first for name in part.names}
    inner = tuple(c for c in node.on if columns_in(c) <= known)
    return Join((Join(tuple(first), inner), last), tuple(c for c in node.on if c not in inner))


# as text --------------------------------------------------------------------------------------------------------------


WAREHOUSE = "dw"
UNITED = f" ∪{WAREHOUSE} "


@dataclass(frozen=True)
class Sites:
    """Where each table is: the name of its source; tables of the warehouse itself are at `dw`."""

    of: tuple[tuple[str, str], ...] = ()

    def __call__(self, node: Node) -> str:
        known = dict(self.of)
        found = {shown(known[name]) if name in known else WAREHOUSE for name in _tables(node)}
        return ",".join(sorted(found))


def shown(source: str) -> str:
    """A source in print: one that has the name of the warehouse stands in quotes."""
    return f"`{source}`" if source.casefold() == WAREHOUSE else source


def formula(node: Node, side: Side, changed: Collection[str], sites: Sites | None = None) -> str:
    """ADD(Q) or DEL(Q) in the paper's notation, every binary operator labelled with the site that evaluates it."""
    return _formula(node, side, changed, sites or Sites()) or "∅"


def _formula(node: Node, side: Side, changed: Collection[str], sites: Sites) -> str:
    mark = "Δ" if side == "ADD" else "∇"
    match node:
        case Scan(table):
            return f"{mark}{table}" if table in changed else ""
        case Filter(input, condition):
            inner = _formula(input, side, changed, sites)
            return f"σ[{condition.sql('spark', identify=False)}]({inner})" if inner else ""
        case Project(input):
            inner = _formula(input, side, changed, sites)
            return f"Π[{', '.join(node.names)}]({inner})" if inner else ""
        case UnionAll(parts):
            return UNITED.join(f for p in parts if (f := _formula(p, side, changed, sites)))
        case Join():
            return _join_formula(binary(node), side, changed, sites)
    if not set(_tables(node)) & set(changed):
        return ""
    return f"{side}[{type(node).__name__}]({', '.join(_state(part, sites) for part in node.inputs)})"


def _join_formula(node: Join, side: Side, changed: Collection[str], sites: Sites) -> str:
    e, f = node.parts
    side_e, side_f = _formula(e, side, changed, sites), _formula(f, side, changed, sites)
    at_e, at_f = sites(e), sites(f)
    either = sites(node)
    side_e, side_f = _operand(side_e), _operand(side_f)
    terms = []
    if side_e and side_f:
        terms.append(f"({side_e} ⋈{either} {side_f})")
    if side_e:
        terms.append(f"({side_e} ⋈{at_f} {_without(f, changed, sites)})")
    if side_f:
        terms.append(f"({_without(e, changed, sites)} ⋈{at_e} {side_f})")
    return UNITED.join(terms)


def _operand(formula: str) -> str:
    """A union stands in parentheses."""
    return f"({formula})" if UNITED in formula and not _is_one(formula) else formula


def _is_one(formula: str) -> bool:
    """The first parenthesis is closed by the last character."""
    depth = 0
    for place, character in enumerate(formula):
        depth += (character == "(") - (character == ")")
        if depth == 0 and place < len(formula) - 1 and character == ")":
            return False
    return formula.endswith(")")


def _without(node: Node, changed: Collection[str], sites: Sites) -> str:
    added = _operand(_formula(node, "ADD", changed, sites))
    state = _state(node, sites)
    return f"({state} −{sites(node)} {added})" if added else state


def _state(node: Node, sites: Sites) -> str:
    """The node in state old."""
    match node:
        case Scan(table):
            return f"{table}ᵒ"
        case Filter(input, condition):
            return f"σ[{condition.sql('spark', identify=False)}]({_state(input, sites)})"
        case Project(input):
            return f"Π[{', '.join(node.names)}]({_state(input, sites)})"
        case Join():
            e, f = binary(node).parts
            return f"({_state(e, sites)} ⋈{sites(node)} {_state(f, sites)})"
    return f"{type(node).__name__}({', '.join(_state(part, sites) for part in node.inputs)})"


def _tables(node: Node) -> list[str]:
    own = [node.table] if isinstance(node, Scan) else []
    return own + [name for part in node.inputs for name in _tables(part)]
