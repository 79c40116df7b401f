"""The catalog: names, versions, sessions, lease and journal, in SQLite or PostgreSQL.

    Catalog ── lease          who may maintain, fenced by a token       lease.py
            ├─ transactions   history and journal of maintenance        transactions.py
            ├─ tables         what is there, at which versions          tables.py
            ├─ views, groups  views, edges, logs; viewgroups, states    views.py, groups.py, freshness.py
            ├─ sources        databases that are captured, rounds       sources.py, rounds.py
            ├─ sessions       who reads which version                   sessions.py, horizon.py
            ├─ garbage        files to remove                           garbage.py
            └─ settings       strings by name                           settings.py

Below them: store.py (transactions, waiting), connect.py (engines), faults.py (errors), migrate.py, check.py.
"""

from __future__ import annotations

from matview.catalog.catalog import Catalog
from matview.catalog.connect import url_of_file
from matview.catalog.records import (
    CatalogChanges,
    EndReason,
    GarbageFile,
    Grain,
    Lease,
    NewTable,
    Observations,
    SessionRecord,
    TableRecord,
    TransactionRecord,
    TransactionState,
    VersionState,
)

__all__ = [
    "Catalog",
    "CatalogChanges",
    "EndReason",
    "GarbageFile",
    "Grain",
    "Lease",
    "NewTable",
    "Observations",
    "SessionRecord",
    "TableRecord",
    "TransactionRecord",
    "TransactionState",
    "VersionState",
    "url_of_file",
]
