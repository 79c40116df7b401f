"""The paper's algorithms (section 3.2) inside a maintenance transaction. Algorithm 3.2, refresh, has a file of its own.

3.1  makesafe               tables have changed: the immediate views under them follow, within the same transaction
3.2  refresh                a view follows what it reads                                         refresh.py
3.3  refresh_group          the snapshot views of a viewgroup follow, parents before children
3.4  refresh_deferred_view  a view that somebody queries follows, after the deferred views that it reads

The logs of Algorithm 3.1 are written when the transaction commits, one entry for each table that views read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from matview.errors import UnknownTable, UnknownViewgroup, UnsupportedStatement
from matview.groups.graph import BASE, Maintain, View
from matview.maintain.change.working import Counts
from matview.maintain.context import Context
from matview.maintain.views.edges import below_anew, is_ahead
from matview.maintain.views.refresh import Mode, refresh
from matview.maintain.views.stopped import held_back, refuse_held_back
from matview.versions.references import table_references


def makesafe(context: Context) -> Counts:
    """Algorithm 3.1: what is immediate and derived from tables that this transaction has changed is refreshed."""
    graph = context.graph
    changed = [w.table.name for w in context.tables if w.is_changed and w.view is None and not w.dropped]
    below = context.notes.redefined.union(below_anew(context), *(graph.descendants(name) for name in changed))
    waiting = [view.name for view in graph.views if view.maintain is Maintain.IMMEDIATE and view.name in below]
    going = _going(context, waiting) if waiting else []
    return refresh(context, going) if going else Counts()


def refresh_group(context: Context, *groups: str, mode: Mode = "auto") -> Counts:
    """Algorithm 3.3: all snapshot views of these groups, parents before children; views of no other group.

    Views that are held back stay as they are, unless all of them are: then that is the answer.
    """
    makesafe(context)
    assignment = context.assignment
    members = {name for group in groups for name in assignment.members(group)}
    waiting = [view.name for view in assignment.views_of(Maintain.SNAPSHOT) if view.name in members]
    going = _going(context, waiting)
    if waiting and not going:
        refuse_held_back(context, waiting)
    counts = refresh(context, going, mode)
    context.notes.refreshed.update(groups)
    return counts


def _going(context: Context, views: list[str]) -> list[str]:
    """Those that are not held back."""
    held = held_back(context)
    return [view for view in views if view not in held]


def refresh_deferred_view(context: Context, *views: str) -> Counts:
    """Algorithm 3.4: these views, if they need it, after the deferred views that they read and that need it."""
    if not views:
        return Counts()
    makesafe(context)
    waiting = dict.fromkeys(name for view in views for name in _needing(context, view))
    refuse_held_back(context, waiting)
    return refresh(context, list(waiting)) if waiting else Counts()


def _needing(context: Context, name: str) -> Iterator[str]:
    """The view and the deferred views under it that have to be refreshed, parents first."""
    above = [other for parent in _deferred(context, context.graph[name].parents) for other in _needing(context, parent)]
    yield from above
    if above or _needs_refresh(context, name):
        yield name


def _needs_refresh(context: Context, name: str) -> bool:
    """The quick check of section 4, from the catalog; and what this transaction itself has done."""
    view = context.tables[name]
    if view.table.id in context.tables.stale or is_ahead(context, view) or name in below_anew(context):
        return True
    if name in context.notes.redefined:
        return True  # it may have been a snapshot view until now
    return any(context.tables[parent].staged for parent in context.graph[name].parents)


def _deferred(context: Context, names: Iterable[str]) -> list[str]:
    return [name for name in names if _policy(context, name) is Maintain.DEFERRED]


def _policy(context: Context, name: str) -> Maintain | None:
    node = context.graph[name]
    return node.maintain if isinstance(node, View) else None


# what a statement is about --------------------------------------------------------------------------------------------


def refresh_named(context: Context, names: Iterable[str], mode: Mode = "auto") -> Counts:
    """Viewgroups and views; a name that is both is the viewgroup's."""
    groups, views = dict[str, None](), dict[str, None]()
    for name in names:
        group = _group_named(context, name)
        (views if group is None else groups)[group or _view_named(context, name, _groups(context))] = None
    return _refreshed(context, groups, views, mode)


def refresh_view(context: Context, name: str, mode: Mode) -> Counts:
    """REFRESH MATERIALIZED VIEW."""
    return _refreshed(context, (), [_view_named(context, name)], mode)


def refresh_viewgroup(context: Context, name: str, mode: Mode) -> Counts:
    """REFRESH VIEWGROUP."""
    group = _group_named(context, name)
    if group is None:
        raise UnknownViewgroup(f"there is no viewgroup {name}")
    return _refreshed(context, [group], (), mode)


def _refreshed(context: Context, groups: Iterable[str], views: Iterable[str], mode: Mode) -> Counts:
    """A snapshot view is refreshed with its group, any other by itself."""
    views = list(views)
    refuse_held_back(context, views)
    by_policy: dict[Maintain | None, list[str]] = {}
    for view in views:
        by_policy.setdefault(_policy(context, view), []).append(view)
    theirs = [context.assignment.group_of[view] for view in by_policy.get(Maintain.SNAPSHOT, ())]
    counts = refresh_group(context, *dict.fromkeys([*groups, *theirs]), mode=mode)
    deferred, immediate = (by_policy.get(policy, []) for policy in (Maintain.DEFERRED, Maintain.IMMEDIATE))
    counts += refresh_deferred_view(context, *deferred)
    return counts + refresh(context, immediate if mode == "auto" else [*immediate, *deferred], mode)


def _group_named(context: Context, name: str) -> str | None:
    if name.casefold() == BASE:
        raise UnsupportedStatement(
            f"viewgroup {BASE} is not refreshed: its tables and views are current, or become so when they are queried",
            help="name a deferred view, or a viewgroup that has snapshot views",
        )
    groups = {group.casefold(): group for group in context.assignment.groups}
    return groups.get(name.casefold())


def _groups(context: Context) -> list[str]:
    """The viewgroups that can be refreshed."""
    return [group for group in context.assignment.groups if group != BASE]


def _view_named(context: Context, name: str, groups: Iterable[str] | None = None) -> str:
    return context.tables.view(name, groups).table.name


def prepare(context: Context, *read: exp.Expr | None) -> None:
    """What is about to be read, in the transaction's own state, says what it should: before queries and new views."""
    names = {name for query in read if query is not None for name in _names(context, query)}
    policies = {name: _policy(context, name) for name in names if name in context.graph}
    if Maintain.IMMEDIATE in policies.values():
        makesafe(context)
    deferred = [name for name, policy in policies.items() if policy is Maintain.DEFERRED]
    if deferred:
        refresh_deferred_view(context, *deferred)


def _names(context: Context, query: exp.Expr) -> Iterator[str]:
    """The views among what a query names; what is not there is for the query itself to say."""
    for reference in table_references(query):
        try:
            working = context.tables.find(reference)
        except UnknownTable:
            continue
        if working.view is not None:
            yield working.table.name
