"""Raising the number of versions: wider schemas, no data rewritten."""

from __future__ import annotations

from matview.catalog.version import check_versions
from matview.maintain.upkeep.collect import held_lease
from matview.storage.runtime import Runtime
from matview.storage.table import delta_fields


def raise_versions(runtime: Runtime, versions: int, *, wait: float | None = None) -> None:
    """Every table's Delta schema first, then the number in the catalog: a wider schema alone changes nothing."""
    check_versions(versions)
    with held_lease(runtime, wait) as lease:
        state = runtime.catalog.version()
        if versions > state.versions:
            for record in runtime.catalog.tables.live(state.current_vn):
                table = runtime.tables.table(record, versions)
                table.log.add_columns(delta_fields(runtime.engine.struct(table.layout.columns)), lease.token)
        runtime.catalog.set_versions(lease, versions)
