"""The heartbeat of a process's open sessions: one thread for all of them."""

from __future__ import annotations

import threading

from matview.catalog.catalog import Catalog
from matview.errors import MatviewError


class Heart:
    """Beats for all sessions, every third of the shortest time to live among them, until each is closed."""

    def __init__(self, catalog: Catalog, ttl: float) -> None:
        self._catalog = catalog
        self._pause = ttl / 3
        self._sessions: set[str] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, session_id: str, ttl: float) -> None:
        with self._lock:
            self._pause = min(self._pause, ttl / 3)
            self._sessions.add(session_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="matview-heart", daemon=True)
                self._thread.start()

    def remove(self, session_id: str) -> None:
        with self._lock:
            self._sessions.discard(session_id)

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            with self._lock:
                beating = tuple(self._sessions)
            for session_id in beating:
                self._beat(session_id)

    def _beat(self, session_id: str) -> None:
        try:
            if not self._catalog.sessions.heartbeat(session_id):
                self.remove(session_id)
        except MatviewError:
            return  # the catalog is away for a moment; a session outlives two missed beats
