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
from matview.spelling import meant
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
            raise self._unknown(reference, version)
        return record

    def _unknown(self, reference: exp.Table, version: int) -> UnknownTable:
        """Misspelt, not there yet, or not there any more."""
        known = sorted(table.name for table in self.catalog.tables.live(version) if not table.is_hidden)
        shown = reference.sql("spark") if reference.db else reference.name
        elsewhere = any(table.name.casefold() == reference.name.casefold() for table in self.catalog.tables.all())
        when = f" at version {version}" if elsewhere and not reference.db else ""
        listed = f"tables: {', '.join(known) or 'none'}"
        close = None if reference.db else meant(reference.name, known)
        return UnknownTable(f"there is no table {shown!r}{when}", where=place_of(reference), help=close or listed)
