"""The heartbeat of a process's open sessions: one thread for all of them."""

from __future__ import annotations

import math
import threading
import time

from matview.catalog.catalog import Catalog
from matview.errors import MatviewError


class Heart:
    """Beats for all sessions, every third of the shortest time to live among them, until each is closed."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._ttls: dict[str, float] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None

    @property
    def sessions(self) -> frozenset[str]:
        """Those that it beats for."""
        with self._changed:
            return frozenset(self._ttls)

    def add(self, session_id: str, ttl: float) -> None:
        """A session that lives shorter than the others shortens the pause that is going on, too."""
        with self._changed:
            self._ttls[session_id] = ttl
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="matview-heart", daemon=True)
                self._thread.start()

    def remove(self, session_id: str) -> None:
        with self._changed:
            self._ttls.pop(session_id, None)

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (due := self._due()) is not None:
            for session_id in due:
                self._beat(session_id)

    def _due(self) -> tuple[str, ...] | None:
        """The sessions, when it is time to beat for them; None when it is all over."""
        began = time.monotonic()
        with self._changed:
            while not self._stopped:
                left = began + min(self._ttls.values(), default=math.inf) / 3 - time.monotonic()
                if left <= 0:
                    return tuple(self._ttls)
                self._changed.wait(None if left == math.inf else left)
        return None

    def _beat(self, session_id: str) -> None:
        try:
            if not self._catalog.sessions.heartbeat(session_id):
                self.remove(session_id)
        except MatviewError:
            return  # the catalog is away for a moment; a session outlives two missed beats
