"""Materialized views: what they are, which tables they read, and how those tables have changed since.

The log of a table is kept only while a view reads it, once for all of them, and is trimmed when every edge has passed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Select, Table, and_, delete, func, select

from matview.catalog import codec, schema
from matview.catalog.freshness import Freshness
from matview.catalog.lease import fenced
from matview.catalog.records import CatalogChanges, Edge, Lease, LogEntry, RefreshRecord, ViewRecord
from matview.catalog.sources import feeding
from matview.catalog.store import Reading, Store, Writing
from matview.catalog.version import version_row

_REFRESHES_KEPT = 50
_cost = schema.refresh.c


class Views:
    """Look views, edges and logs up; they change only with the transaction that makes the change."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, table_id: int) -> ViewRecord | None:
        """The view that a table holds, if it holds one."""
        found = self._store.read(lambda reading: reading.first(_of(schema.view, table_id)))
        return None if found is None else codec.view_record(found)

    def graph(self) -> tuple[dict[int, ViewRecord], tuple[Edge, ...]]:
        """Every view by its table's id, and every edge, of one moment."""
        return self._store.read(_graph)

    def freshness(self) -> Freshness:
        """How far every view has come, of one moment."""
        return self._store.read(_freshness)

    def log(self, table_id: int, after: int) -> tuple[LogEntry, ...]:
        """How a table changed after a version, oldest first."""
        return self._store.read(lambda reading: _log(reading, table_id, after))

    def waiting(self, view_id: int) -> tuple[int, dict[int, tuple[LogEntry, ...]]]:
        """The newest version, and what a view has yet to take over of each table that it reads, of one moment."""
        return self._store.read(lambda reading: _waiting(reading, view_id))

    def refreshes(self, *views: str) -> dict[str, tuple[RefreshRecord, ...]]:
        """What earlier refreshes of each of these cost, newest first."""
        folded = {view: view.casefold() for view in views}
        newest_first = func.row_number().over(partition_by=_cost.name_folded, order_by=_cost.vn.desc())
        own = _cost.name_folded.in_(folded.values())
        numbered = select(schema.refresh, newest_first.label("place")).where(own).subquery()
        newest = select(numbered).where(numbered.c.place <= _REFRESHES_KEPT).order_by(numbered.c.place)
        found: dict[str, list[RefreshRecord]] = {name: [] for name in folded.values()}
        for row in self._store.read(lambda reading: reading.rows(newest)) if views else ():
            found[row["name_folded"]].append(codec.refresh_record(row))
        return {view: tuple(found[name]) for view, name in folded.items()}

    def newest_refreshes(self, limit: int) -> tuple[RefreshRecord, ...]:
        """The last refreshes of any views, newest first."""
        newest = select(schema.refresh).order_by(schema.refresh.c.vn.desc(), schema.refresh.c.name_folded).limit(limit)
        rows = self._store.read(lambda reading: reading.rows(newest))
        return tuple(codec.refresh_record(row) for row in rows)

    def prune(self, lease: Lease, keep: int) -> int:
        """Forget what refreshes cost, but for the newest `keep` of each view; how many."""
        return fenced(self._store, lease, lambda writing: _prune(writing, max(keep, _REFRESHES_KEPT)))


def _prune(writing: Writing, keep: int) -> int:
    newer = schema.refresh.alias()
    later = and_(newer.c.name_folded == schema.refresh.c.name_folded, newer.c.vn > schema.refresh.c.vn)
    count = select(func.count()).select_from(newer).where(later).correlate(schema.refresh).scalar_subquery()
    return writing.change(delete(schema.refresh).where(count >= keep))


def _graph(reading: Reading) -> tuple[dict[int, ViewRecord], tuple[Edge, ...]]:
    views = {row["table_id"]: codec.view_record(row) for row in reading.rows(select(schema.view))}
    return views, tuple(codec.edge(row) for row in reading.rows(select(schema.edge)))


def _freshness(reading: Reading) -> Freshness:
    views, edges = _graph(reading)
    newest = select(schema.log.c.table_id, func.max(schema.log.c.vn).label("vn")).group_by(schema.log.c.table_id)
    logged = {row["table_id"]: row["vn"] for row in reading.rows(newest)}
    version = version_row(reading)
    fed, stopped = feeding(reading)
    return Freshness(version["current_vn"], version["defined_vn"], views, edges, logged, fed, stopped)


def _log(reading: Reading, table_id: int, after: int) -> tuple[LogEntry, ...]:
    later = _of(schema.log, table_id).where(schema.log.c.vn > after).order_by(schema.log.c.vn)
    return tuple(codec.log_entry(row) for row in reading.rows(later))


def _waiting(reading: Reading, view_id: int) -> tuple[int, dict[int, tuple[LogEntry, ...]]]:
    """Hidden parts read for the view that they serve."""
    fresh = _freshness(reading)
    own = [edge for edge in fresh.edges if fresh.owner(edge.child_id) == view_id != fresh.owner(edge.parent_id)]
    consumed = {edge.parent_id: edge.consumed for edge in sorted(own, key=lambda edge: -edge.consumed)}
    found = {parent: _log(reading, parent, after) for parent, after in consumed.items()}
    return fresh.current_vn, {parent: entries for parent, entries in found.items() if entries}


def change_views(writing: Writing, changes: CatalogChanges) -> None:
    """The part of a commit that is about views: new ones, edges that moved on, logs that grew and shrank."""
    writing.put(schema.view, [_view_row(view) for view in changes.views])
    writing.put(schema.edge, [_edge_row(edge) for edge in changes.edges])
    writing.put(schema.log, [codec.log_row(entry) for entry in changes.log])
    writing.put(schema.refresh, [_refresh_row(record, writing.now()) for record in changes.refreshes])
    _forget_edges(writing, changes.dropped)
    _trim(writing, {edge.parent_id for edge in changes.edges} | _parents_of(changes.dropped, writing))


def _forget_edges(writing: Writing, dropped: Sequence[int]) -> None:
    for table_id in dropped:
        writing.change(delete(schema.edge).where(schema.edge.c.child_id == table_id))
        writing.change(delete(schema.edge).where(schema.edge.c.parent_id == table_id))


def _parents_of(dropped: Sequence[int], reading: Reading) -> set[int]:
    """With a view gone, any log may have become longer than anybody needs."""
    return {row["table_id"] for row in reading.rows(select(schema.log.c.table_id).distinct())} if dropped else set()


def _trim(writing: Writing, tables: Collection[int]) -> None:
    for table_id in tables:
        passed = writing.value(select(func.min(schema.edge.c.consumed_vn)).where(schema.edge.c.parent_id == table_id))
        entries = schema.log.c.table_id == table_id
        writing.change(
            delete(schema.log).where(entries if passed is None else and_(entries, schema.log.c.vn <= passed))
        )


def _of(table: Table, table_id: int) -> Select[Any]:
    return select(table).where(table.c.table_id == table_id)


def _view_row(view: ViewRecord) -> dict[str, object]:
    return {
        "table_id": view.table_id,
        "query": view.query,
        "policy": view.policy,
        "owner_id": view.owner_id,
        "reason": view.reason,
        "maintain": view.maintain.value,
        "viewgroup": view.viewgroup,
        "schedule": view.schedule,
    }


def _edge_row(edge: Edge) -> dict[str, object]:
    ids = {"parent_id": edge.parent_id, "child_id": edge.child_id}
    return {**ids, "consumed_vn": edge.consumed, "anew": edge.anew}


def _refresh_row(record: RefreshRecord, now: float) -> dict[str, object]:
    return {
        "name_folded": record.view.casefold(),
        "vn": record.vn,
        "strategy": record.strategy,
        "estimated": record.estimated,
        "seconds": record.seconds,
        "rows": record.rows,
        "refreshed_at": now,
        "at_hand": record.at_hand,
    }
