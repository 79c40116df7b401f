"""Making, altering and dropping viewgroups, inside a maintenance transaction."""

from __future__ import annotations

from dataclasses import replace

from matview.catalog.records import GroupRecord
from matview.groups.named import group_exists, group_in_use, unknown_group
from matview.maintain.context import Context
from matview.maintain.views.define import drop_with_readers
from matview.sql import statements as st


def create(context: Context, statement: st.CreateViewgroup) -> str:
    if statement.name.casefold() in context.declared:
        if statement.if_not_exists:
            return ""
        raise group_exists(statement.name)
    _put(context, GroupRecord(statement.name, str(statement.schedule), statement.comment))
    return f"viewgroup {statement.name} made"


def alter(context: Context, statement: st.AlterViewgroup) -> str:
    group = _declared(context, statement.name)
    comment = group.comment if statement.comment is None else statement.comment
    _put(context, replace(group, schedule=str(statement.schedule), comment=comment))
    return f"viewgroup {group.name} altered"


def rename(context: Context, statement: st.RenameViewgroup) -> str:
    """Its views, and the state that they show, go with it."""
    group, new = _declared(context, statement.name), statement.new_name
    if new.casefold() in context.declared and new.casefold() != group.name.casefold():
        raise group_exists(new)
    inside = [name for name, view in _declared_for(context, group.name)]
    _remove(context, group.name)
    _put(context, replace(group, name=new))
    for name in inside:
        working = context.tables[name]
        assert working.view is not None
        working.view = context.notes.views[working.table.id] = replace(working.view, viewgroup=new)
    context.notes.renamed.append((group.name, new))
    if group.name in context.notes.refreshed:
        context.notes.refreshed = context.notes.refreshed - {group.name} | {new}
    return f"viewgroup {group.name} is called {new}"


def drop(context: Context, statement: st.DropViewgroup) -> str:
    if statement.if_exists and statement.name.casefold() not in context.declared:
        return ""
    group = _declared(context, statement.name)
    views = context.assignment.members(group.name)
    if views and not statement.cascade:
        raise group_in_use(group.name, views)
    words = [drop_with_readers(context, *views)] if views else []
    _remove(context, group.name)
    return ", ".join([*words, f"viewgroup {group.name} dropped"])


def _declared(context: Context, name: str) -> GroupRecord:
    found = context.declared.get(name.casefold())
    if found is not None:
        return found
    raise unknown_group(name, of_a_view=name in context.tables and context.tables[name].view is not None)


def _declared_for(context: Context, group: str) -> list[tuple[str, str]]:
    views = [view for view in context.graph.views if view.declared]
    return [(view.name, group) for view in views if view.declared[0].casefold() == group.casefold()]


def _put(context: Context, group: GroupRecord) -> None:
    context.notes.declared = {**context.declared, group.name.casefold(): group}
    context.note_definition()


def _remove(context: Context, name: str) -> None:
    context.notes.declared = {key: group for key, group in context.declared.items() if key != name.casefold()}
    context.note_definition()
