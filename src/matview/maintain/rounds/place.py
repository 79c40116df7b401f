"""What a round works with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from matview.catalog.source_records import SourceRecord
from matview.errors import MatviewError
from matview.maintain.commit import Step
from matview.maintain.transaction import MaintenanceTransaction
from matview.sources import connect
from matview.sources.engine import Source
from matview.storage.runtime import Runtime

Begin = Callable[[Step | None], MaintenanceTransaction]
"""Opens a maintenance transaction; what is given is called at each of its steps."""


class Connections:
    """Sources that are connected to, each once, by their ids. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Source] = {}
        self._urls: dict[str, str] = {}

    def of(self, source: SourceRecord) -> Source:
        with self._lock:
            found = self._open.get(source.id)
            if found is None:
                found = self._open[source.id] = connect(self._urls.get(source.id, source.url))
            return found

    def keep(self, source_id: str, url: str, connected: Source) -> None:
        """A source just added; a password in its URL is known to this process alone, until it ends."""
        with self._lock:
            self._urls[source_id] = url
            self._open[source_id] = connected

    def drop(self, source_id: str) -> None:
        """What went wrong may be the connection: the next use makes a new one."""
        with self._lock:
            found = self._open.pop(source_id, None)
        if found is not None:
            with suppress(MatviewError):
                found.close()

    def close(self) -> None:
        for source_id in list(self._open):
            self.drop(source_id)


def _nothing(_: str) -> None:
    return None


@dataclass(frozen=True)
class Place:
    """The warehouse, its connections to sources, a way to begin maintenance transactions; `step` hears of each step."""

    runtime: Runtime
    connections: Connections
    begin: Begin
    step: Step = _nothing
