"""What readers and maintenance share: the catalog, the tables, Spark, and the settings."""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass

from sqlglot import exp

from matview.catalog.catalog import Catalog
from matview.catalog.records import TableRecord
from matview.errors import UnknownTable
from matview.settings import Settings
from matview.sql.parse import place_of
from matview.storage.engine import Engine
from matview.storage.tables import OpenTables


@dataclass(frozen=True)
class Runtime:
    catalog: Catalog
    engine: Engine
    tables: OpenTables
    settings: Settings

    @property
    def holder(self) -> str:
        """Who we are, in leases and sessions."""
        return f"{socket.gethostname()}:{os.getpid()}:{threading.current_thread().name}"

    def record(self, reference: exp.Table, version: int) -> TableRecord:
        """The table of that name at that version, or an error that says what there is."""
        name = reference.name
        record = None if reference.db else self.catalog.tables.find(name, version)
        if record is None:
            known = ", ".join(sorted(t.name for t in self.catalog.tables.live(version))) or "none"
            shown = reference.sql("spark") if reference.db else name
            raise UnknownTable(
                f"there is no table {shown!r} at version {version}", where=place_of(reference), help=f"tables: {known}"
            )
        return record
