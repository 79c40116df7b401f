"""Making, altering and dropping materialized views, inside a maintenance transaction."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matview.algebra.text import text
from matview.catalog.records import ViewRecord
from matview.errors import NotIncremental, UnsupportedStatement
from matview.groups.edits import altered, quoted
from matview.groups.graph import Maintain, View
from matview.groups.named import no_table, refuse_if_read, with_readers
from matview.maintain.change.working import Working
from matview.maintain.context import Context
from matview.maintain.definitions import defined
from matview.maintain.views.algorithms import prepare
from matview.maintain.views.edges import note_edge
from matview.maintain.views.run import filled
from matview.maintain.views.stopped import refuse_stopped
from matview.plan.definition import Part
from matview.sql import statements as st


def create(context: Context, statement: st.CreateView) -> str:
    """The view and its hidden parts, made and filled; what was done, in words."""
    if statement.if_not_exists and statement.name in context.tables:
        return ""
    prepare(context, statement.query)
    parts, reason = defined(context.lookup, statement.name, statement.query, statement.columns, statement.policy)
    refuse_stopped(context, statement.name, {name for part in parts for name in part.reads})
    properties = {"cluster_by": list(statement.cluster_by), "properties": dict(statement.properties)}
    record = ViewRecord(
        table_id=0,
        query=textwrap.dedent(statement.text).strip(),
        policy=statement.policy,
        reason=reason,
        maintain=statement.maintain or Maintain.SNAPSHOT,
        viewgroup=statement.group,
        schedule=None if statement.schedule is None else str(statement.schedule),
    )
    _make(context, parts, record, properties)
    context.note_definition(statement.name)
    return f"materialized view {statement.name} made"


def alter(context: Context, statement: st.AlterView) -> str:
    """Another query under the same name: built beside the old view, then switched in one version."""
    old = context.tables.view(statement.name)
    refuse_if_read(context.graph, old.table.name)
    assert old.view is not None
    prepare(context, statement.query)
    properties = context.tables.properties(old)
    _drop_all(context, old)
    context.note_definition()
    parts, reason = defined(context.lookup, statement.name, statement.query, statement.columns, old.view.policy)
    refuse_stopped(context, statement.name, {name for part in parts for name in part.reads})
    written = textwrap.dedent(statement.text).strip()
    _make(context, parts, replace(old.view, query=written, reason=reason), properties)
    context.note_definition(statement.name)
    return f"materialized view {statement.name} altered"


def set_view(context: Context, statement: st.SetView) -> str:
    """Another policy, viewgroup or schedule; whether all is legal then is asked at the commit."""
    view = context.tables.view(statement.name)
    changed = altered(_node(context, view), statement.maintain, statement.group, statement.schedule)
    return _settled(context, view, changed, statement.policy)


def restate(context: Context, statement: st.RestateView) -> str:
    """As `set_view`, and what is not said is forgotten."""
    view = context.tables.view(statement.name)
    declared = () if statement.group is None else (statement.group,)
    changed = replace(_node(context, view), maintain=statement.maintain, declared=declared, cycle=statement.schedule)
    return _settled(context, view, changed, statement.policy)


def _node(context: Context, view: Working) -> View:
    node = context.graph[view.table.name]
    assert isinstance(node, View)
    return node


def _settled(context: Context, view: Working, changed: View, wanted: st.RefreshPolicy | None) -> str:
    assert view.view is not None
    before = view.view
    policy = wanted or before.policy
    if policy == "strict" and before.reason is not None:
        raise NotIncremental(f"{view.table.name} is computed anew each time: {before.reason}")
    view.view = replace(
        before,
        policy=policy,
        maintain=changed.maintain,
        viewgroup=next(iter(changed.declared), None),
        schedule=None if changed.cycle is None else str(changed.cycle),
    )
    for part in (*context.tables.owned(view.table.id), view):
        assert part.view is not None
        part.view = replace(part.view, policy=policy)
        context.notes.views[part.table.id] = part.view
    context.note_definition(*[view.table.name] * (changed.maintain is not before.maintain))
    return f"materialized view {view.table.name} altered"


def drop(context: Context, statement: st.DropView) -> str:
    if statement.if_exists and statement.name not in context.tables:
        return ""
    view = context.tables.view(statement.name)
    if not statement.cascade:
        refuse_if_read(context.graph, view.table.name)
    return drop_with_readers(context, view.table.name)


def drop_table(context: Context, statement: st.DropTable) -> str:
    if statement.if_exists and statement.name not in context.tables:
        return ""
    table = context.tables[statement.name]
    if table.view is not None:
        raise no_table(table.table.name)
    if table.source is not None:
        raise UnsupportedStatement(
            f"{table.table.name} is fed by source {table.source}", help=f"DROP SOURCE {quoted(table.source)}"
        )
    if not statement.cascade:
        refuse_if_read(context.graph, table.table.name)
    return drop_with_readers(context, table.table.name)


def drop_fed(context: Context, names: Sequence[str], *, cascade: bool) -> str:
    """The tables of a source that goes."""
    if not cascade:
        for name in names:
            refuse_if_read(context.graph, context.tables[name].table.name)
    return drop_with_readers(context, *names) if names else ""


def drop_with_readers(context: Context, *names: str) -> str:
    """Tables and views with all views that are derived from them, these first; what was done, in words."""
    words = []
    for name in with_readers(context.graph, names):
        working = context.tables[name]
        words.append(f"{'table' if working.view is None else 'materialized view'} {name} dropped")
        _drop_all(context, working)
    context.note_definition()
    return ", ".join(words)


# making and dropping --------------------------------------------------------------------------------------------------


def _make(context: Context, parts: tuple[Part, ...], record: ViewRecord, properties: Mapping[str, object]) -> None:
    """Tables first, so that hidden views know whom they serve; then contents, in order."""
    made = [context.tables.create(p.name, p.schema, properties if p is parts[-1] else {}) for p in parts]
    owner = made[-1].table.id
    for part, working in zip(parts, made, strict=True):
        hidden = working.table.id != owner
        if hidden:
            working.view = ViewRecord(working.table.id, text(part.node), record.policy, owner, record.reason)
        else:
            working.view = replace(record, table_id=owner)
        context.notes.views[working.table.id] = working.view
        with context.runtime.engine.for_changes(few=False):
            filled(context, working, part)
        for parent in sorted(part.reads):
            note_edge(context, context.tables[parent], working)


def _drop_all(context: Context, view: Working) -> None:
    """The view and its hidden parts."""
    for hidden in context.tables.owned(view.table.id):
        context.tables.drop(hidden.table.name)
    context.tables.drop(view.table.name)
