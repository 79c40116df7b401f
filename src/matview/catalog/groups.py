"""Viewgroups: those that were declared, and the effective state of each, at every version that can be read."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import and_, delete, func, select, update

from matview.catalog import codec, schema
from matview.catalog.graph import graph_of
from matview.catalog.records import CatalogChanges, GroupChanges, GroupRecord, GroupState
from matview.catalog.store import Reading, Store, Writing
from matview.catalog.version import version_row
from matview.groups.graph import BASE, Graph
from matview.groups.states import State, States, Step

_states = schema.state.c


class Groups:
    """Look viewgroups up; they change only with the transaction that makes the change."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def declared(self) -> tuple[GroupRecord, ...]:
        """The viewgroups that somebody made, by name."""
        return self._store.read(_declared)

    def graph(self) -> Graph:
        """Every table and view, what each reads, and the declared viewgroups, of one moment."""
        return self._store.read(_graph)

    def states(self, at_version: int | None = None) -> tuple[GroupState, ...]:
        """The effective state of each viewgroup but `base`, by name, now or at a version."""
        return self._store.read(lambda reading: _states_at(reading, at_version))

    def standing(self) -> States:
        """The same, beside the newest version and the last that changed a base table, of one moment."""
        return self._store.read(_standing)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _declared(reading: Reading) -> tuple[GroupRecord, ...]:
    found = reading.rows(select(schema.viewgroup).order_by(schema.viewgroup.c.name_folded))
    return tuple(codec.group_record(row) for row in found)


def _graph(reading: Reading) -> Graph:
    live = select(schema.table.c.id, schema.table.c.name).where(schema.table.c.dropped_vn.is_(None))
    names = {row["id"]: row["name"] for row in reading.rows(live)}
    views = {row["table_id"]: codec.view_record(row) for row in reading.rows(select(schema.view))}
    edges = [(row["parent_id"], row["child_id"]) for row in reading.rows(select(schema.edge))]
    return graph_of(names, views, edges, _declared(reading))


def _states_at(reading: Reading, at_version: int | None) -> tuple[GroupState, ...]:
    """Of each group the last row not later than the version, unless that says that it has gone."""
    seen = select(_states.name_folded, func.max(_states.vn).label("vn")).group_by(_states.name_folded)
    last = (seen if at_version is None else seen.where(_states.vn <= at_version)).subquery()
    both = and_(_states.name_folded == last.c.name_folded, _states.vn == last.c.vn)
    query = select(schema.state).join(last, both).where(_states.effective_vn.is_not(None)).order_by(_states.name_folded)
    return tuple(codec.group_state(row) for row in reading.rows(query))


def _standing(reading: Reading) -> States:
    version = version_row(reading)
    groups = {s.group: State(s.version, moment(s.at)) for s in _states_at(reading, None)}
    return States(State(version["current_vn"], moment(reading.now())), version["changed_vn"], groups)


# changing -------------------------------------------------------------------------------------------------------------


def change_groups(writing: Writing, changes: CatalogChanges, vn: int, began_at: float) -> None:
    """The part of a commit that is about viewgroups: declarations, then effective states (section 3.3)."""
    groups = changes.groups
    for old, new in groups.renamed:
        _rename(writing, old, new)
    for name in groups.dropped:
        writing.change(delete(schema.viewgroup).where(schema.viewgroup.c.name_folded == name.casefold()))
    writing.put(schema.viewgroup, [_group_row(group) for group in groups.made])
    _move(writing, groups, vn, changed=changes.changed, began_at=began_at)
    writing.put(schema.state, [_state_row(name, vn) for name in groups.gone])
    _forget(writing)


def _move(writing: Writing, groups: GroupChanges, vn: int, *, changed: bool, began_at: float) -> None:
    if not groups.refreshed:
        return
    step = Step(State(vn, moment(writing.now())), groups.refreshed, changed)
    later = _standing(writing).after(step, {**groups.parent_of, BASE: BASE})
    rows = [_state_row(name, vn, later.of(name), began_at) for name in sorted(groups.refreshed)]
    writing.put(schema.state, rows)


def _rename(writing: Writing, old: str, new: str) -> None:
    """The group's past goes with it; whatever had the new name before is forgotten."""
    folded = {"name_folded": new.casefold(), "name": new}
    for table in (schema.viewgroup, schema.state):
        if new.casefold() != old.casefold():
            writing.change(delete(table).where(table.c.name_folded == new.casefold()))
        writing.change(update(table).where(table.c.name_folded == old.casefold()).values(**folded))


def _forget(writing: Writing) -> None:
    """What is older than the last state that the oldest readable version shows."""
    horizon = version_row(writing)["gc_horizon"]
    later = schema.state.alias()
    hidden = and_(later.c.name_folded == _states.name_folded, later.c.vn > _states.vn, later.c.vn <= horizon)
    writing.change(delete(schema.state).where(select(later.c.vn).where(hidden).exists()))
    gone = and_(_states.effective_vn.is_(None), _states.vn <= horizon)
    writing.change(delete(schema.state).where(gone))


def _group_row(group: GroupRecord) -> dict[str, object]:
    return {
        "name_folded": group.name.casefold(),
        "name": group.name,
        "schedule": group.schedule,
        "comment": codec.clean(group.comment),
    }


def _state_row(name: str, vn: int, state: State | None = None, began_at: float | None = None) -> dict[str, object]:
    return {
        "name_folded": name.casefold(),
        "vn": vn,
        "name": name,
        "effective_vn": state.version if state else None,
        "effective_at": state.time.timestamp() if state else None,
        "refreshed_at": began_at,
    }
