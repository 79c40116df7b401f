"""Every step the catalog's schema has taken, in order: the n-th leads from schema number n - 1 to n.

A migration is never changed once released, and never imports the schema of today.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from matview.catalog.migrations import (
    m0001_initial,
    m0002_views,
    m0003_viewgroups,
    m0004_sources,
    m0005_anew,
    m0006_holds,
    m0007_at_hand,
)

Migration = Callable[[Connection], None]

MIGRATIONS: tuple[Migration, ...] = (
    m0001_initial.upgrade,
    m0002_views.upgrade,
    m0003_viewgroups.upgrade,
    m0004_sources.upgrade,
    m0005_anew.upgrade,
    m0006_holds.upgrade,
    m0007_at_hand.upgrade,
)
