"""What a maintenance transaction owes before it commits: a legal graph, and views that say what they should.

rules       whatever was made, altered or dropped, the whole graph is legal
makesafe    immediate views follow the tables that were changed
groups      a viewgroup that a view has come into is refreshed, so that all its views show one state; and one that
            was refreshed before more was changed is refreshed again: what lies in between is no state of the base
anew        views over a table that goes on from another state are computed anew, or when they are held back no more
deferred    views that a query inside the transaction has refreshed too early, likewise
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matview.catalog.records import GroupChanges
from matview.groups.assign import Assignment
from matview.groups.check import checked
from matview.groups.graph import BASE, Maintain
from matview.maintain.context import Context
from matview.maintain.views.algorithms import makesafe, refresh_deferred_view, refresh_group
from matview.maintain.views.edges import below_anew, is_ahead, note_left_anew
from matview.maintain.views.stopped import held_back


def settle(context: Context) -> GroupChanges:
    """Does what is owed; tells what becomes of viewgroups. Raises the error of the rule that does not hold."""
    notes = context.notes
    assignment = checked(context.graph, context.committed.graph) if notes.defined else context.assignment
    makesafe(context)
    joined = _joined(context, assignment) if notes.defined else frozenset[str]()
    held = held_back(context)
    below = [name for name in below_anew(context) if name not in held]
    late = [view.name for view in assignment.views_of(Maintain.SNAPSHOT) if view.name in below]
    renewed = {assignment.group_of[name] for name in late}
    for group in _parents_first(assignment):
        if group in joined or group in renewed or _has_moved_on(context, assignment, group):
            refresh_group(context, group)
    refresh_deferred_view(context, *(v.name for v in assignment.views_of(Maintain.DEFERRED) if v.name in below))
    if notes.seen:
        views = (view.name for view in assignment.views_of(Maintain.DEFERRED))
        refresh_deferred_view(context, *(name for name in views if is_ahead(context, context.tables[name])))
    note_left_anew(context)
    return _changes(context, assignment)


def _joined(context: Context, assignment: Assignment) -> frozenset[str]:
    """The groups into which a snapshot view has come, new or from elsewhere."""
    before, renamed = context.committed.group_of, context.notes.renamed
    found = set()
    for view in assignment.views_of(Maintain.SNAPSHOT):
        group = assignment.group_of[view.name]
        came_from = _now_called(before.get(view.name, ""), renamed)
        if view.name in context.notes.redefined or group != came_from:
            found.add(group)
    return frozenset(found)


def _now_called(group: str, renamed: Sequence[tuple[str, str]]) -> str:
    for old, new in renamed:
        if group.casefold() == old.casefold():
            group = new
    return group


def _has_moved_on(context: Context, assignment: Assignment, group: str) -> bool:
    """A view of the group was refreshed by this transaction, and what it reads was changed after that."""
    if not context.notes.seen:
        return False
    members = set(assignment.members(group))
    views = [view.name for view in assignment.views_of(Maintain.SNAPSHOT) if view.name in members]
    return any(is_ahead(context, context.tables[name]) for name in views)


def _parents_first(assignment: Assignment) -> list[str]:
    """The groups that have views, `base` left out; each after the one that it is derived from."""
    order = {name: place for place, name in enumerate(assignment.graph.order)}
    groups = [group for group in assignment.groups if group != BASE and assignment.members(group)]
    return sorted(groups, key=lambda group: (_depth(assignment, group), order[assignment.members(group)[0]]))


def _depth(assignment: Assignment, group: str) -> int:
    return 0 if group == BASE else 1 + _depth(assignment, assignment.parent(group))


def _changes(context: Context, assignment: Assignment) -> GroupChanges:
    notes, alive = context.notes, _parents_first(assignment)
    refreshed = frozenset(group for group in notes.refreshed if group in alive)
    parent_of = {group: assignment.parent(group) for group in alive}
    if not notes.defined:
        return GroupChanges(refreshed=refreshed, parent_of=parent_of)
    there = [replace(g, name=_now_called(g.name, notes.renamed)) for g in context.runtime.catalog.groups.declared()]
    known = {group.name.casefold(): group for group in there}
    before = {_now_called(group, notes.renamed).casefold() for group in _parents_first(context.committed)}
    return GroupChanges(
        made=tuple(group for key, group in context.declared.items() if known.get(key) != group),
        dropped=tuple(group.name for key, group in known.items() if key not in context.declared),
        renamed=tuple(notes.renamed),
        refreshed=refreshed,
        parent_of=parent_of,
        gone=tuple(sorted(before - {group.casefold() for group in alive})),
    )
