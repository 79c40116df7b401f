"""select p (E join F) = (select p E) join F  where p speaks of E only; and so on, as deep as the columns of p allow.

An outer join whose padded rows are all dropped by a condition becomes one with fewer of them, or an inner join.
"""

from __future__ import annotations

from dataclasses import replace

from matview.algebra.conditions import (
    Conditions,
    each,
    fails_on_nulls,
    fields_of,
    filtered,
    implied_constants,
    parted,
)
from matview.algebra.nodes import (
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Opaque,
    Outer,
    Project,
    Repeat,
    Scan,
    Semi,
    SetOp,
    Stored,
    TopK,
    UnionAll,
    Unnest,
    Values,
    Window,
    rebuilt,
)
from matview.algebra.scalars import column, conjunction, conjuncts, renamed, substituted


def push_filters(node: Node) -> Node:
    return _select(node, ())


def _select(node: Node, conditions: Conditions) -> Node:
    """The rows of the node that meet the conditions."""
    match node:
        case Filter(input, condition):
            return _select(input, each((condition, *conditions)))
        case Join():
            return _join(node, conditions)
        case Outer():
            return _outer(node, conditions)
        case Semi():
            return _semi(node, conditions)
        case UnionAll() | SetOp():
            return _by_position(node, conditions)
        case Scan() | Change() | Stored() | Values() | Opaque():
            return filtered(node, conditions)
        case Project() | Aggregate() | Window() | TopK() | Repeat() | Unnest():
            return _unary(node, conditions)


def _unary(node: Project | Aggregate | Window | TopK | Repeat | Unnest, conditions: Conditions) -> Node:
    match node:
        case Project(input, outputs):
            values = dict(outputs)
            return replace(node, input=_select(input, each(substituted(c, values) for c in conditions)))
        case Repeat():
            return replace(node, input=_select(node.input, conditions))
        case TopK() | Aggregate(keys=()):
            return filtered(replace(node, input=_select(node.input, ())), conditions)
        case Aggregate(input, names) | Window(input, names):
            inside, above = parted(conditions, names)
            return filtered(replace(node, input=_select(input, inside)), above)
        case Unnest(input):
            inside, above = parted(conditions, input.names)
            return filtered(replace(node, input=_select(input, inside)), above)


def _by_position(node: UnionAll | SetOp, conditions: Conditions) -> Node:
    """Into all parts, where all have columns of one type: a cast may change what a condition says."""
    inside, above = parted(conditions, [f.name for f in node.fields if f.type])
    parts = []
    for part in node.inputs:
        names = dict(zip(node.names, part.names, strict=True))
        parts.append(_select(part, tuple(renamed(c, names) for c in inside)))
    return filtered(rebuilt(node, tuple(parts)), above)


def _join(node: Join, conditions: Conditions) -> Node:
    waiting = each((*node.on, *conditions))
    waiting = (*waiting, *implied_constants(waiting, fields_of(node)))
    parts = []
    for part in node.parts:
        inside, waiting = parted(waiting, part.names) if part.names else ((), waiting)
        parts.append(_select(part, inside))
    return Join(tuple(parts), waiting)


def _semi(node: Semi, conditions: Conditions) -> Node:
    """What `on` asks of the right alone decides which of its rows can be met; of the left alone, if any can."""
    asked, on = parted(conjuncts(node.on), node.right.names)
    if node.kind == "semi":
        own, on = parted(on, node.left.names)
        conditions = each((*conditions, *own))
    asked = each((*asked, *_carried(node, conditions, on)))
    return Semi(node.kind, _select(node.left, conditions), _select(node.right, asked), conjunction(*on))


def _carried(node: Semi | Outer, conditions: Conditions, on: Conditions) -> Conditions:
    """Constants of the left that `on` hands to the right: rows without them are not met anyway."""
    implied = implied_constants((*conditions, *on), fields_of(node.left, node.right))
    return parted(implied, node.right.names)[0]


def _outer(node: Outer, conditions: Conditions) -> Node:
    match _drops(conditions, node.right), node.kind == "left" or _drops(conditions, node.left):
        case True, True:
            return _select(Join(node.inputs, conjuncts(node.on)), conditions)
        case False, True:
            return _left(replace(node, kind="left"), conditions)
        case True, False:
            turned = Outer("left", node.right, node.left, node.on)
            return Project(_left(turned, conditions), tuple((name, column(name)) for name in node.names))
    return filtered(rebuilt(node, tuple(map(push_filters, node.inputs))), conditions)


def _drops(conditions: Conditions, padded: Node) -> bool:
    """Whether no row survives whose columns of this side are nulls for want of a match."""
    return any(fails_on_nulls(c, padded.names) for c in conditions)


def _left(node: Outer, conditions: Conditions) -> Node:
    """Conditions on the left decide which rows there are, those in `on` about the right which of its rows are met."""
    own, above = parted(conditions, node.left.names)
    asked, on = parted(conjuncts(node.on), node.right.names)
    asked = each((*asked, *_carried(node, own, on)))
    return filtered(Outer("left", _select(node.left, own), _select(node.right, asked), conjunction(*on)), above)
