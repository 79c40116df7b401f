"""Sources that are connected to."""

from __future__ import annotations

import threading
from contextlib import suppress

from matview.catalog.source_records import SourceRecord
from matview.errors import MatviewError
from matview.sources import connect
from matview.sources.engine import Source


class Connections:
    """Sources that are connected to, each once, by their ids. Threads may share it.

    Who waits for a source to answer keeps nobody from the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connecting: dict[str, threading.Lock] = {}
        self._open: dict[str, Source] = {}
        self._urls: dict[str, str] = {}

    def of(self, source: SourceRecord) -> Source:
        with self._lock:
            connecting = self._connecting.setdefault(source.id, threading.Lock())
        with connecting:
            found = self._open.get(source.id)
            if found is None:
                found = self._open[source.id] = connect(self.url(source))
            return found

    def url(self, source: SourceRecord) -> str:
        """With the password, if this process was given one."""
        return self._urls.get(source.id, source.url)

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
