"""Which deferred views a query would have to refresh: told from the catalog alone, in one look (section 4, C11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from matview.catalog.records import Edge, ViewRecord
from matview.groups.graph import Maintain


@dataclass(frozen=True)
class Freshness:
    """Views, edges and the newest entry of each table's log, of one moment.

    `fed`: the tables that a source feeds, and its name; `stopped`: those of them that it feeds no more, and why.
    """

    current_vn: int
    defined_vn: int
    views: Mapping[int, ViewRecord]
    edges: tuple[Edge, ...]
    logged: Mapping[int, int]
    fed: Mapping[int, str] = field(default_factory=dict)
    stopped: Mapping[int, str] = field(default_factory=dict)

    def owner(self, table_id: int) -> int:
        """The view that a hidden part serves; any other table itself."""
        view = self.views.get(table_id)
        return table_id if view is None or view.owner_id is None else view.owner_id

    def is_deferred(self, table_id: int) -> bool:
        view = self.views.get(table_id)
        return view is not None and view.maintain is Maintain.DEFERRED and view.owner_id is None

    def stale(self) -> frozenset[int]:
        """The deferred views that do not say what their parents say: one of these has changed, or is stale itself.

        Those that are held back are left out: they say what they last could.
        """
        into: dict[int, list[Edge]] = {}
        for edge in self.edges:
            into.setdefault(self.owner(edge.child_id), []).append(edge)
        known: dict[int, bool] = {}

        def needs(view: int) -> bool:
            if view not in known:
                known[view] = False
                known[view] = any(self._has_moved(edge) or waits(edge) for edge in into.get(view, ()))
            return known[view]

        def waits(edge: Edge) -> bool:
            return self.is_deferred(edge.parent_id) and needs(edge.parent_id)

        held = self.held_back()
        return frozenset(view for view in into if self.is_deferred(view) and view not in held and needs(view))

    def held_back(self) -> dict[int, int]:
        """The views that must stay as they are, each with a stopped table that it is derived from."""
        found, growing = {table: table for table in self.stopped}, bool(self.stopped)
        while growing:
            below = {self.owner(e.child_id): found[e.parent_id] for e in self.edges if e.parent_id in found}
            hidden = {e.child_id: found[e.parent_id] for e in self.edges if e.parent_id in found}
            growing = not (below | hidden).keys() <= found.keys()
            found = below | hidden | found
        return {table: stopped for table, stopped in found.items() if table in self.views}

    def is_waiting(self, edge: Edge) -> bool:
        """The parent's log has something that the child has yet to take over."""
        return self.logged.get(edge.parent_id, 0) > edge.consumed

    def _has_moved(self, edge: Edge) -> bool:
        return edge.anew or self.is_waiting(edge)
