"""Bringing a view up to date: what changed, which strategy, one step per stored relation.

refresh(v):  the views that v reads, then its hidden parts in order, then v itself
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from matview.algebra.nodes import Scan, walk
from matview.catalog.records import LogEntry, RefreshRecord
from matview.errors import UnknownTable
from matview.maintain import run
from matview.maintain.context import Context
from matview.maintain.definitions import defined
from matview.maintain.pending import Pending, pending
from matview.maintain.views import note_edge
from matview.maintain.working import Counts, Working
from matview.plan.choice import Situation, choose
from matview.plan.cost import TableFacts
from matview.plan.definition import Part
from matview.plan.steps import Apply, Merge, Rebuild, Step
from matview.sql.parse import parse_one
from matview.sql.statements import Query


def refresh(context: Context, name: str, *, forced: str | None = None) -> Counts:
    """The view equals its query over the tables as this transaction sees them."""
    view = context.tables[name]
    if view.view is None:
        raise UnknownTable(f"{name} is a table, not a materialized view", help="`SHOW MATERIALIZED VIEWS` lists them")
    counts = Counts()
    for part, working in _parts(context, view):
        for parent in sorted(part.reads):
            above = context.tables[parent]
            if above.view is not None and above.view.owner_id is None:
                counts += refresh(context, parent)
        counts += _refresh_part(context, part, working, forced)
    return counts


def _parts(context: Context, view: Working) -> list[tuple[Part, Working]]:
    """What is stored for a view, as its query says today."""
    assert view.view is not None
    statement = parse_one(view.view.query)
    assert isinstance(statement, Query)
    parts, _ = defined(context.lookup, view.table.name, statement.query, view.table.schema.visible, view.view.policy)
    stored = {w.table.name: w for w in (*context.tables.owned(view.table.id), view)}
    return [(part, stored[part.name]) for part in parts]


def _changes(context: Context, part: Part, working: Working) -> dict[str, Pending]:
    """The tables whose changes matter to a part."""
    columns = _columns_read(part)
    found = {}
    for parent in part.reads:
        change = pending(_entries(context, context.tables[parent], working))
        if change.matters(columns.get(parent)):
            found[parent] = change
    return found


def _entries(context: Context, parent: Working, child: Working) -> Iterator[LogEntry]:
    """What was committed since the child looked, and what this transaction has staged."""
    ids = (parent.table.id, child.table.id)
    if ids not in context.notes.seen and ids in context.tables.edges:
        yield from context.runtime.catalog.views.log(parent.table.id, context.tables.edges[ids].consumed)
    if parent.staged and context.notes.seen.get(ids) != parent.statements:
        yield parent.log_entry()


def _is_taken_over_partly(context: Context, part: Part, working: Working) -> bool:
    """Within one transaction a table's changes are told as one: a part of them cannot be taken away again."""
    parents = [context.tables[parent] for parent in part.reads]
    seen = [(context.notes.seen.get((p.table.id, working.table.id)), p.statements) for p in parents if p.staged]
    return any(then is not None and then != now for then, now in seen)


def _columns_read(part: Part) -> dict[str, set[str]]:
    """The columns that a part reads of each table; a table that is not there is read in ways unknown."""
    read: dict[str, set[str]] = {}
    for leaf in walk(part.node):
        if isinstance(leaf, Scan):
            read.setdefault(leaf.table, set()).update(leaf.columns)
    return read


def _refresh_part(context: Context, part: Part, working: Working, forced: str | None) -> Counts:
    changed = _changes(context, part, working)
    if _is_taken_over_partly(context, part, working):
        forced = "full"
    counts = Counts()
    if changed or forced is not None:
        step = choose(part, _situation(context, part, working, changed), forced)
        began = time.perf_counter()
        counts = _run(context, step, working, {name: change.files for name, change in changed.items()})
        seconds = time.perf_counter() - began
        record = RefreshRecord(part.name, context.version, step.strategy, step.cost, seconds, counts.total)
        context.notes.refreshes.append(record)
    for parent in part.reads:
        note_edge(context, context.tables[parent], context.tables[part.name])
    return counts


def _situation(context: Context, part: Part, working: Working, changed: dict[str, Pending]) -> Situation:
    assert working.view is not None
    tables = {name: _facts(context.tables[name], changed.get(name)) for name in part.reads}
    earlier = context.runtime.catalog.views.refreshes(part.name)
    return Situation(tables, _facts(working, None), working.view.policy, earlier)


def _facts(working: Working, change: Pending | None) -> TableFacts:
    files = working.current.files
    moved = 0 if change is None else change.rows
    only_inserts = change is None or change.only_inserts
    return TableFacts(sum(f.rows for f in files), sum(f.size for f in files), moved, only_inserts)


def _run(context: Context, step: Step, working: Working, changed: run.Changed) -> Counts:
    match step.action:
        case Apply():
            return run.applied(context, working, step.action, changed)
        case Merge():
            return run.merged(context, working, step.action, changed)
        case Rebuild():
            return run.rebuilt(context, working, step.part)
