"""The materialized views of a warehouse: their policies, how far they have come, and how they were last refreshed."""

from __future__ import annotations

from dataclasses import dataclass

from matview.algebra.schema import RESERVED_PREFIX
from matview.catalog.catalog import Catalog
from matview.catalog.records import RefreshRecord
from matview.groups.assign import assigned


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """`behind` counts the versions that changed a table it reads since it was refreshed.

    `strategy` and `seconds` are those of the last refresh, `reason` why the view is computed anew each time, if it is.
    """

    name: str
    query: str
    policy: str
    maintain: str
    group: str
    reads: tuple[str, ...]
    behind: int
    refreshed_vn: int
    strategy: str
    seconds: float
    reason: str | None

    @property
    def row(self) -> tuple[object, ...]:
        """As SHOW MATERIALIZED VIEWS tells it."""
        return self.name, self.maintain, self.group, self.policy, self.strategy, self.reason or ""


def views_of(catalog: Catalog) -> list[ViewStatus]:
    """By name; hidden parts belong to the views they serve."""
    tables = {table.id: table for table in catalog.tables.live(catalog.version().current_vn)}
    views, edges = catalog.views.graph()
    groups = assigned(catalog.groups.graph()).group_of
    owners = {table_id: view.owner_id or table_id for table_id, view in views.items()}
    found, past = [], catalog.views.refreshes(*(tables[table_id].name for table_id in views if table_id in tables))
    for table_id, view in views.items():
        if table_id not in tables or view.owner_id is not None:
            continue
        own = [e for e in edges if owners.get(e.child_id) == table_id and owners.get(e.parent_id) != table_id]
        waiting = {entry.vn for e in own for entry in catalog.views.log(e.parent_id, e.consumed)}
        last = next(iter(past[tables[table_id].name]), None)
        found.append(
            ViewStatus(
                name=tables[table_id].name,
                query=view.query,
                policy=view.policy,
                maintain=view.maintain.value,
                group=groups.get(tables[table_id].name, ""),
                reads=tuple(sorted({tables[e.parent_id].name for e in own if e.parent_id in tables})),
                behind=len(waiting),
                refreshed_vn=min((e.consumed for e in own), default=tables[table_id].created_vn),
                strategy=last.strategy if last else "",
                seconds=last.seconds if last else 0.0,
                reason=view.reason,
            )
        )
    return sorted(found, key=lambda view: view.name.casefold())


def refreshes_of(catalog: Catalog, limit: int) -> list[RefreshRecord]:
    """The last refreshes of views, newest first, hidden parts left out."""
    found = catalog.views.newest_refreshes(limit)
    return [record for record in found if not record.view.startswith(RESERVED_PREFIX)]


def refreshes_at(catalog: Catalog, view: str, version: int) -> tuple[RefreshRecord, ...]:
    """What a version did to a view and, before it, to its hidden parts; nothing where nothing had changed for it."""
    tables = catalog.tables.live(version)
    views, _ = catalog.views.graph()
    own = {table.id for table in tables if table.name.casefold() == view.casefold()}
    parts = [table.name for table in tables if table.id in views and views[table.id].owner_id in own]
    found = catalog.views.refreshes(*parts, view).values()
    return tuple(record for records in found for record in records if record.vn == version)
