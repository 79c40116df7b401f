"""Views that are held back: a table that they are derived from has drifted, or was changed behind capture.

Such a table stays as it last was while others go on, so a view over both would show a state that no source ever had.
"""

from __future__ import annotations

from collections.abc import Iterable

from matview.catalog.freshness import Freshness
from matview.errors import CaptureBypassed, MatviewError, SourceDrifted
from matview.groups.edits import quoted
from matview.maintain.context import Context


def held_back(context: Context) -> dict[str, str]:
    """The views that must stay as they are, each with the stopped table that it is derived from."""
    resumed = {table.table_id for _, table in context.notes.sources.resumed}
    stopped = context.tables.fresh.stopped.keys() - resumed
    if not stopped:
        return {}
    names = {table.id: table.name for table in context.runtime.catalog.tables.live(context.version - 1)}
    graph = context.graph
    tables = [names[table_id] for table_id in stopped if names.get(table_id, "") in graph]
    return {view: table for table in tables for view in graph.descendants(table)}


def refuse_held_back(context: Context, views: Iterable[str]) -> None:
    """SourceDrifted or CaptureBypassed for the first of the views that is held back."""
    held = held_back(context)
    for view in views:
        if view in held:
            fresh = context.tables.fresh
            raise stopped_error(view, fresh, context.tables[held[view]].table.id)


def refuse_stopped(context: Context, view: str, reads: Iterable[str]) -> None:
    """A view to be must not read a table that is stopped, nor a view that is held back."""
    fresh = context.tables.fresh
    if fresh.stopped:
        held = held_back(context)
        for name in reads:
            if name in context.tables and (table := context.tables[held.get(name, name)].table.id) in fresh.stopped:
                raise stopped_error(view, fresh, table)


def stopped_error(view: str, fresh: Freshness, table_id: int) -> MatviewError:
    """What is said of a view that a stopped table holds back."""
    source = fresh.fed[table_id]
    return why_stopped(
        fresh.stopped[table_id],
        f"{view} stays as it is, since it reads a table of source {source} that is stopped",
        f"`matview source check {quoted(source)}` says what to do",
    )


def why_stopped(kept: str, what: str, help: str) -> MatviewError:
    """The error that stopped a table, from its text in the catalog, after what is said of it."""
    kind = CaptureBypassed if CaptureBypassed.code in kept else SourceDrifted
    return kind(f"{what}: {kept.split('] ', 1)[-1].splitlines()[0]}", help=help)
