"""The change of a view that is the top k of something, from what it holds.

With S the stored rows, s the last of them if they are k, and D- and D+ what goes and comes:

    C  =  S - D- + D+            what is known; whatever else there is comes after s, or S was all there was
    top k of C                   if k of its rows, or all that there are, come no later than s
    top k of E', the whole       otherwise

Both are one expression, in which one side or the other is empty; the whole is read only if too many stored rows leave,
or fall behind s. Whether they do is told by s itself, put among C after its equals: is it one of the first k?
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Filter, Node, Project, Repeat, Semi, Stored, TopK, UnionAll
from matview.algebra.scalars import column, conjunction, number, same
from matview.delta.derive import change
from matview.delta.signed import kept, net, only, weighted
from matview.plan.definition import Part

_IS_LAST = "__last"


def top_change(part: Part, changed: Collection[str]) -> Node | None:
    """None if the view is something else, or does not hold all that it is ordered by."""
    root, outputs = (part.node.input, part.node.outputs) if isinstance(part.node, Project) else (part.node, ())
    if not isinstance(root, TopK) or root.offset or not root.limit:
        return None
    stored = Stored(part.name, part.node.fields)
    held, moved = _as_computed(stored, root, outputs), change(root.input, changed)
    if held is None or moved is None:
        return None
    known = _known(held, net(moved))
    short = _short(known, held, root)
    either = UnionAll((Semi("anti", known, short, exp.true()), Semi("semi", root.input, short, exp.true())))
    now: Node = replace(root, input=either)
    return UnionAll((weighted(Project(now, outputs) if outputs else now), weighted(stored, -1)))


def _known(held: Node, told: Node) -> Node:
    """What was stored, without what goes of it, and what comes."""
    goes, comes = Filter(told, _compared(exp.LT)), Filter(told, _compared(exp.GT))
    signed = only(comes, (*held.names, WEIGHT))
    left = net(UnionAll((weighted(held), signed, _among_stored(goes, held))))
    return Repeat(Filter(left, _compared(exp.GT)), WEIGHT)


def _short(known: Node, held: Node, root: TopK) -> Node:
    """The last of the stored rows, if they were k and fewer than k of those known come no later."""
    last = TopK(held, root.order, 1, root.limit - 1)
    told = [Project(one, (*kept(held.names), (_IS_LAST, number(n)))) for n, one in enumerate((known, last))]
    after_equals = exp.Ordered(this=column(_IS_LAST), nulls_first=True)
    first = TopK(UnionAll(tuple(told)), (*root.order, after_equals), root.limit)
    return Project(Filter(first, exp.EQ(this=column(_IS_LAST), expression=number(1))), (("__short", column(_IS_LAST)),))


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
    """The rows that go and are stored, with their weights."""
    names = held.names
    gone = Project(goes, (*((f"__gone.{name}", column(name)) for name in names), (WEIGHT, column(WEIGHT))))
    there = Project(held, tuple((f"__held.{name}", column(name)) for name in names))
    on = conjunction(*(same(column(f"__gone.{name}"), column(f"__held.{name}")) for name in names))
    found = Semi("semi", gone, there, on)
    return Project(found, (*((name, column(f"__gone.{name}")) for name in names), (WEIGHT, column(WEIGHT))))
