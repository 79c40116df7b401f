"""The change of a view that is the top k of something, from what it holds.

With S the stored rows, and D- and D+ what goes and comes:

    if no row of D- is in S      top k of (S + D+): whatever else there is comes after S, or S is all there was
    else                         top k of E', the whole of it

Both are one expression, in which one side or the other is empty; the whole is read only if a stored row leaves.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Filter, Node, Project, Repeat, Semi, Stored, TopK, UnionAll
from matview.algebra.scalars import column, conjunction, number, same
from matview.delta.derive import change
from matview.delta.signed import kept, net, weighted
from matview.plan.definition import Part


def top_change(part: Part, changed: Collection[str]) -> Node | None:
    """None if the view is something else, or does not hold all that it is ordered by."""
    root, outputs = (part.node.input, part.node.outputs) if isinstance(part.node, Project) else (part.node, ())
    if not isinstance(root, TopK) or root.offset:
        return None
    stored = Stored(part.name, part.node.fields)
    held, moved = _as_computed(stored, root, outputs), change(root.input, changed)
    if held is None or moved is None:
        return None
    told = net(moved)
    goes, comes = Filter(told, _compared(exp.LT)), Repeat(Filter(told, _compared(exp.GT)), WEIGHT)
    leaving = _among_stored(goes, held)
    near = UnionAll((held, Project(comes, kept(root.input.names))))
    either = UnionAll((Semi("anti", near, leaving, exp.true()), Semi("semi", root.input, leaving, exp.true())))
    now: Node = replace(root, input=either)
    return UnionAll((weighted(Project(now, outputs) if outputs else now), weighted(stored, -1)))


def _as_computed(stored: Stored, root: TopK, outputs: tuple[tuple[str, exp.Expr], ...]) -> Node | None:
    """What is stored, under the names that the rows had before they were shown."""
    if not outputs:
        return stored
    shown = {e.name: name for name, e in outputs if isinstance(e, exp.Column)}
    if not set(root.input.names) <= shown.keys():
        return None
    return Project(stored, tuple((name, column(shown[name])) for name in root.input.names))


def _compared(how: type[exp.Binary]) -> exp.Expr:
    return how(this=column(WEIGHT), expression=number(0))


def _among_stored(goes: Node, held: Node) -> Node:
    """The rows that go and are stored."""
    names = held.names
    gone = Project(goes, tuple((f"__gone.{name}", column(name)) for name in names))
    there = Project(held, tuple((f"__held.{name}", column(name)) for name in names))
    on = conjunction(*(same(column(f"__gone.{name}"), column(f"__held.{name}")) for name in names))
    return Semi("semi", gone, there, on)
