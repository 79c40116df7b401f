"""Making, altering and dropping materialized views, inside a maintenance transaction."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from matview.algebra.text import text
from matview.catalog.records import Edge, ViewRecord
from matview.errors import UnsupportedStatement
from matview.maintain.context import Context
from matview.maintain.definitions import defined
from matview.maintain.run import filled
from matview.maintain.working import Working
from matview.plan.definition import Part
from matview.sql import statements as st


def create(context: Context, statement: st.CreateView) -> str:
    """The view and its hidden parts, made and filled; what was done, in words."""
    if statement.if_not_exists and statement.name in context.tables:
        return ""
    parts, reason = defined(context.lookup, statement.name, statement.query, statement.columns, statement.policy)
    properties = {"cluster_by": list(statement.cluster_by), "properties": dict(statement.properties)}
    written = textwrap.dedent(statement.text).strip()
    _make(context, parts, ViewRecord(0, written, statement.policy, reason=reason), properties)
    return f"materialized view {statement.name} made"


def alter(context: Context, statement: st.AlterView) -> str:
    """Another query under the same name: built beside the old view, then switched in one version."""
    old = context.tables.view(statement.name)
    refuse_if_read(context, old)
    assert old.view is not None
    record = context.runtime.catalog.tables.by_id(old.table.id)
    properties = dict(record.properties) if record else {}
    _drop_all(context, old)
    parts, reason = defined(context.lookup, statement.name, statement.query, (), old.view.policy)
    written = textwrap.dedent(statement.text).strip()
    _make(context, parts, ViewRecord(0, written, old.view.policy, reason=reason), properties)
    return f"materialized view {statement.name} altered"


def drop(context: Context, statement: st.DropView) -> str:
    if statement.if_exists and statement.name not in context.tables:
        return ""
    view = context.tables.view(statement.name)
    refuse_if_read(context, view)
    _drop_all(context, view)
    return f"materialized view {statement.name} dropped"


def refuse_if_read(context: Context, working: Working) -> None:
    """What views read cannot go before them."""
    names = sorted(child.table.name for child in readers(context, working))
    if names:
        raise UnsupportedStatement(
            f"{working.table.name} is read by {', '.join(names)}", help=f"DROP MATERIALIZED VIEW {names[0]} first"
        )


def readers(context: Context, working: Working) -> Iterator[Working]:
    """The views, not hidden ones, that read a table directly or through a hidden view."""
    found = set()
    for parent, child in {**context.tables.edges, **context.notes.edges}:
        record = context.tables.views.get(child) or context.notes.views.get(child)
        owner = child if record is None or record.owner_id is None else record.owner_id
        if parent == working.table.id and owner != working.table.id:
            found.add(owner)
    for table_id in found:
        known = context.runtime.catalog.tables.by_id(table_id)
        if known is not None and known.name in context.tables and context.tables[known.name].table.id == table_id:
            yield context.tables[known.name]


# making and dropping --------------------------------------------------------------------------------------------------


def _make(context: Context, parts: tuple[Part, ...], record: ViewRecord, properties: Mapping[str, object]) -> None:
    """Tables first, so that hidden views know whom they serve; then contents, in order."""
    made = [context.tables.create(p.name, p.schema, properties if p is parts[-1] else {}) for p in parts]
    owner = made[-1].table.id
    for part, working in zip(parts, made, strict=True):
        hidden = working.table.id != owner
        query, served = (text(part.node), owner) if hidden else (record.query, None)
        working.view = ViewRecord(working.table.id, query, record.policy, served, record.reason)
        context.notes.views[working.table.id] = working.view
        filled(context, working, part)
        for parent in sorted(part.reads):
            note_edge(context, context.tables[parent], working)


def note_edge(context: Context, parent: Working, child: Working) -> None:
    """From here on the child has taken over everything up to this very version, as far as it has come by now."""
    ids = (parent.table.id, child.table.id)
    context.notes.edges[ids] = Edge(*ids, context.version)
    context.notes.seen[ids] = parent.statements


def _drop_all(context: Context, view: Working) -> None:
    """The view and its hidden parts."""
    for hidden in context.tables.owned(view.table.id):
        context.tables.drop(hidden.table.name)
    context.tables.drop(view.table.name)
