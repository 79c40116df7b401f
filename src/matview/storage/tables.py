"""The tables of a warehouse: records of the catalog become versioned tables, each opened once."""

from __future__ import annotations

import threading

from matview.catalog.records import NewTable, TableRecord, remote_of
from matview.storage.engine import Engine
from matview.storage.files import Files
from matview.storage.pool import Pool
from matview.storage.table import VersionedTable


class OpenTables:
    """Opened tables, by id and number of versions."""

    def __init__(self, root: Files, engine: Engine) -> None:
        self.root = root
        self.engine = engine
        self.pool = Pool()
        self._lock = threading.Lock()
        self._open: dict[tuple[int, int], VersionedTable] = {}

    def table(self, record: TableRecord | NewTable, versions: int) -> VersionedTable:
        with self._lock:
            found = self._open.get((record.id, versions))
            if found is None:
                files = self.root.under(record.directory)
                remote, expected = remote_of(record)
                found = VersionedTable(
                    record.id,
                    record.name,
                    record.schema,
                    versions,
                    files,
                    self.engine,
                    self.pool,
                    _cluster_by(record),
                    remote,
                    expected,
                )
                self._open[(record.id, versions)] = found
            return found


def _cluster_by(record: TableRecord | NewTable) -> list[str]:
    found = record.properties.get("cluster_by", [])
    return [str(name) for name in found] if isinstance(found, list) else []
