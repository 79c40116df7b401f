"""Deferred views are brought up to date by whoever reads them first; of several who come at once, by one.

A look into the catalog tells whether there is anything to do (C11). If there is, the one who holds the lease refreshes;
the others wait for the lease, then find nothing left to do. The version that they read is the one at which the views
are up to date, whatever is committed after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from matview.catalog.freshness import Freshness
from matview.catalog.records import Grain, SessionRecord
from matview.errors import MaintenanceBusy
from matview.maintain.commit import Step
from matview.maintain.transaction import MaintenanceTransaction
from matview.maintain.views.stopped import stopped_error
from matview.storage.runtime import Runtime

Begin = Callable[[Step | None], MaintenanceTransaction]
"""Opens a maintenance transaction; what is given is called at each of its steps."""


def up_to_date(runtime: Runtime, begin: Begin, names: Collection[str]) -> int:
    """A version at which these tables say what they should: the newest, or the one that a refresh has made."""
    fresh = runtime.catalog.views.freshness()
    if fresh.stopped:
        _refuse_held_back(runtime, fresh, names)
    stale = fresh.stale()
    if stale:
        wanted = [runtime.catalog.tables.find(name, fresh.current_vn) for name in set(names)]
        due = [table.name for table in wanted if table is not None and table.id in stale]
        if due:
            return _refreshed(begin, due)
    return fresh.current_vn


def _refuse_held_back(runtime: Runtime, fresh: Freshness, names: Collection[str]) -> None:
    """A deferred view promises to be up to date; one that cannot be says so."""
    held = fresh.held_back()
    wanted = [runtime.catalog.tables.find(name, fresh.current_vn) for name in set(names)]
    for table in wanted:
        if table is not None and table.id in held and fresh.is_deferred(table.id):
            raise stopped_error(table.name, fresh, held[table.id])


def _refreshed(begin: Begin, views: list[str]) -> int:
    with _patient(begin, views, None) as tx:
        tx.refresh_deferred(*views)
        before = tx.version - 1
        made = tx.commit().version
    return before if made is None else made


def pinned(runtime: Runtime, begin: Begin, grain: Grain, ttl: float) -> SessionRecord:
    """A session at a version at which all deferred views are up to date: the newest, or one made for it."""
    while True:
        record = runtime.catalog.sessions.open(runtime.holder, grain, ttl)
        fresh = runtime.catalog.views.freshness()
        if not any(map(fresh.is_deferred, fresh.views)) or (fresh.current_vn == record.version and not fresh.stale()):
            return record
        runtime.catalog.sessions.close(record.id)
        if fresh.stale():
            return _pinned_by_refresh(runtime, begin, grain, ttl)


def _pinned_by_refresh(runtime: Runtime, begin: Begin, grain: Grain, ttl: float) -> SessionRecord:
    """Pinned under the lease, so that nobody can commit between the refresh and the session."""
    opened: list[SessionRecord] = []

    def pin(step: str) -> None:
        if step in ("committed", "idle"):
            opened.append(runtime.catalog.sessions.open(runtime.holder, grain, ttl))

    with _patient(begin, [], pin) as tx:
        tx.refresh_deferred()
        tx.commit()
    return opened[0]


def _patient(begin: Begin, views: list[str], step: Step | None) -> MaintenanceTransaction:
    try:
        return begin(step)
    except MaintenanceBusy as error:
        what = f"deferred view {', '.join(views)}" if views else "deferred views"
        raise MaintenanceBusy(
            f"{what} cannot be brought up to date: {error.what}",
            help="try again when the transaction has ended, or raise the setting lease_wait",
        ) from None
