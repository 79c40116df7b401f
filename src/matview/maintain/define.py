"""Statements that make, alter or drop tables, views and viewgroups; each says in words what was done."""

from __future__ import annotations

from typing import assert_never

from matview.algebra.schema import RESERVED_PREFIX
from matview.errors import BadDefinition
from matview.maintain import groups
from matview.maintain.context import Context
from matview.maintain.views import define as views
from matview.sql import statements as st


def define(context: Context, statement: st.Definition | st.GroupDefinition) -> str:
    """What was done; nothing if there was nothing to do."""
    if statement.name.startswith(RESERVED_PREFIX):
        raise BadDefinition(f"{statement.name!r} begins with {RESERVED_PREFIX!r}, which is reserved")
    match statement:
        case st.CreateTable():
            return _create_table(context, statement)
        case st.DropTable():
            return views.drop_table(context, statement)
        case st.CreateView():
            return views.create(context, statement)
        case st.AlterView():
            return views.alter(context, statement)
        case st.SetView():
            return views.set_view(context, statement)
        case st.RestateView():
            return views.restate(context, statement)
        case st.DropView():
            return views.drop(context, statement)
        case st.CreateViewgroup() | st.AlterViewgroup() | st.RenameViewgroup() | st.DropViewgroup():
            return _define_group(context, statement)
        case _:
            assert_never(statement)


def _create_table(context: Context, statement: st.CreateTable) -> str:
    if statement.if_not_exists and statement.name in context.tables:
        return ""
    properties = {"cluster_by": list(statement.cluster_by), "properties": dict(statement.properties)}
    context.tables.create(statement.name, statement.schema, properties)
    context.note_definition()
    return f"table {statement.name} made"


def _define_group(
    context: Context, statement: st.CreateViewgroup | st.AlterViewgroup | st.RenameViewgroup | st.DropViewgroup
) -> str:
    match statement:
        case st.CreateViewgroup():
            return groups.create(context, statement)
        case st.AlterViewgroup():
            return groups.alter(context, statement)
        case st.RenameViewgroup():
            return groups.rename(context, statement)
        case st.DropViewgroup():
            return groups.drop(context, statement)
