"""How far views have come within a maintenance transaction."""

from __future__ import annotations

from matview.catalog.records import Edge
from matview.maintain.context import Context
from matview.maintain.working import Working


def note_edge(context: Context, parent: Working, child: Working) -> None:
    """From here on the child has taken over everything up to this very version, as far as it has come by now."""
    ids = (parent.table.id, child.table.id)
    parent.logged = True
    context.notes.edges[ids] = Edge(*ids, context.version)
    context.notes.seen[ids] = parent.statements


def is_ahead(context: Context, view: Working) -> bool:
    """Something that the view reads has changed in this transaction after the view was refreshed in it."""
    own = {view.table.id, *(hidden.table.id for hidden in context.tables.owned(view.table.id))}
    for (parent_id, child_id), then in context.notes.seen.items():
        if child_id in own:
            parent = context.tables.by_id(parent_id)
            if parent is not None and parent.statements != then:
                return True
    return False
