"""How far views have come within a maintenance transaction."""

from __future__ import annotations

from dataclasses import replace

from matview.catalog.records import Edge
from matview.maintain.change.working import Working
from matview.maintain.context import Context


def note_edge(context: Context, parent: Working, child: Working) -> None:
    """From here on the child has taken over everything up to this very version, as far as it has come by now."""
    ids = (parent.table.id, child.table.id)
    parent.logged = True
    context.notes.edges[ids] = Edge(*ids, context.version)
    context.notes.seen[ids] = parent.statements


def is_anew(context: Context, parent: Working, child: Working) -> bool:
    """The parent goes on from a state that its changes do not lead to, and the child has yet to be computed from it."""
    ids = (parent.table.id, child.table.id)
    edge = context.tables.edges.get(ids)
    return ids not in context.notes.seen and (parent.renewed or (edge is not None and edge.anew))


def below_anew(context: Context) -> frozenset[str]:
    """The views over tables that go on from a state to which no changes lead: no log will tell them later.

    From this transaction on, or from an earlier one, in which something else had held the view back.
    """
    renewed = [working.table.name for working in context.tables if working.renewed]
    left = _left_anew(context)
    return frozenset(left).union(*(context.graph.descendants(name) for name in (*renewed, *left)))


def _left_anew(context: Context) -> list[str]:
    fresh = context.tables.fresh
    views = {fresh.owner(edge.child_id) for edge in fresh.edges if edge.anew}
    if not views:
        return []
    names = {table.id: table.name for table in context.runtime.catalog.tables.live(context.version - 1)}
    return [names[view] for view in views if names.get(view, "") in context.graph]


def note_left_anew(context: Context) -> None:
    """Views that were not computed from the new state of a table, since they are held back: later they will be."""
    renewed = {working.table.id for working in context.tables if working.renewed}
    for ids, edge in context.tables.edges.items():
        if edge.parent_id in renewed and ids not in context.notes.seen:
            context.notes.edges[ids] = replace(edge, anew=True)


def is_ahead(context: Context, view: Working) -> bool:
    """Something that the view reads has changed in this transaction after the view was refreshed in it."""
    own = {view.table.id, *(hidden.table.id for hidden in context.tables.owned(view.table.id))}
    for (parent_id, child_id), then in context.notes.seen.items():
        if child_id in own:
            parent = context.tables.by_id(parent_id)
            if parent is not None and parent.statements != then:
                return True
    return False
