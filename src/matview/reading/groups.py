"""The viewgroups of a warehouse: their schedules and views, the state that each shows, and when it moves on."""

from __future__ import annotations

from dataclasses import dataclass

from matview.catalog.catalog import Catalog
from matview.catalog.groups import moment
from matview.groups.assign import assigned
from matview.groups.graph import BASE
from matview.groups.schedule import next_due
from matview.reading.shown import moment as shown_moment


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """`state` is the version of the base tables that the group shows, `state_at` when it was the newest (seconds).

    `behind`: how old that is, in seconds, 0 while nothing newer is there. `due_at`: when the schedule asks for the next
    refresh, None if it never does; in the past if it is overdue. A group without views shows no state. `held_back`: the
    views that stay as they are, since a table that they are derived from is stopped.
    """

    name: str
    schedule: str
    views: tuple[str, ...]
    derived_from: str | None
    state: int | None
    state_at: float | None
    behind: float
    due_at: float | None
    comment: str | None = None
    held_back: tuple[str, ...] = ()

    @property
    def row(self) -> tuple[object, ...]:
        """As SHOW VIEWGROUPS tells it."""
        times = shown_moment(self.state_at), self.behind, shown_moment(self.due_at)
        return self.name, self.schedule, list(self.views), self.state, *times, self.comment


def groups_of(catalog: Catalog) -> list[GroupStatus]:
    """`base` first, then by name."""
    assignment, standing = assigned(catalog.groups.graph()), catalog.groups.standing()
    refreshed = {state.group: state.refreshed_at for state in catalog.groups.states()}
    comments = {group.name: group.comment for group in catalog.groups.declared()}
    now, held = standing.newest.time, _held_back(catalog)
    found = []
    for name, group in sorted(assignment.groups.items(), key=lambda item: (item[0] != BASE, item[0].casefold())):
        known = name == BASE or name in standing.groups
        state = standing.of(name) if known else None
        last = refreshed.get(name)
        views = [view.name for view in assignment.graph.views if assignment.group_of[view.name] == name]
        due = next_due(group.schedule, None if last is None else moment(last), now) if views else None
        found.append(
            GroupStatus(
                name=name,
                schedule="" if name == BASE else str(group.schedule),
                views=tuple(views),
                derived_from=None if name == BASE or not views else assignment.parent(name),
                state=None if state is None else state.version,
                state_at=None if state is None else state.time.timestamp(),
                behind=standing.behind(name, now).total_seconds() if known else 0.0,
                due_at=None if due is None else due.timestamp(),
                comment=comments.get(name),
                held_back=tuple(view for view in views if view in held),
            )
        )
    return found


def _held_back(catalog: Catalog) -> frozenset[str]:
    fresh = catalog.views.freshness()
    held = fresh.held_back()
    return (
        frozenset(table.name for table in catalog.tables.live(fresh.current_vn) if table.id in held)
        if held
        else frozenset()
    )
