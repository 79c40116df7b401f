"""A source that is one's own while it is added, or read whole again: others leave it alone for as long as one lives."""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from types import TracebackType

from matview.errors import MatviewError
from matview.maintain.rounds.place import Place


def new_holder(place: Place) -> str:
    """A name for one attempt of this process."""
    return f"{place.runtime.holder}/{secrets.token_hex(4)}"


class Holding:
    """Says again and again that the source is held; lets it go at the end of the block."""

    def __init__(self, place: Place, source_id: str, holder: str) -> None:
        self._sources, self._ttl = place.runtime.catalog.sources, place.runtime.settings.lease_ttl
        self._id, self._holder = source_id, holder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="matview-holding", daemon=True)

    @property
    def is_ours(self) -> bool:
        """Nobody has taken the source over, and nothing has become of it meanwhile."""
        return self._sources.renew(self._id, self._holder, self._ttl)

    def _run(self) -> None:
        while not self._stop.wait(self._ttl / 3):
            with suppress(MatviewError):  # the catalog is away for a moment; the claim outlives two failed renewals
                self._sources.renew(self._id, self._holder, self._ttl)

    def __enter__(self) -> Holding:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        with suppress(MatviewError):  # one that cannot be let go ends by itself
            self._sources.release(self._id, self._holder)
