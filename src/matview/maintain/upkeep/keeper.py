"""A lease that is kept alive while its transaction works."""

from __future__ import annotations

import threading

from matview.catalog.catalog import Catalog
from matview.catalog.records import Lease
from matview.errors import LeaseLost, MatviewError


class LeaseKeeper:
    """Renews in the background; `check` raises once the lease is known to be lost."""

    def __init__(self, catalog: Catalog, lease: Lease, ttl: float) -> None:
        self._catalog = catalog
        self.lease = lease
        self._ttl = ttl
        self._stop = threading.Event()
        self._lost: LeaseLost | None = None
        self._thread = threading.Thread(target=self._run, name="matview-lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._ttl / 3):
            try:
                self._catalog.lease.renew(self.lease, self._ttl)
            except LeaseLost as error:
                self._lost = error
                return
            except MatviewError:
                continue  # the catalog is away for a moment; the lease outlives two failed renewals

    def check(self) -> None:
        if self._lost is not None:
            raise self._lost

    def stop(self) -> None:
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
