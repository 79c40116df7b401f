"""The catalog: names, versions, sessions and the journal of a warehouse, shared by several processes at once."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import TracebackType

from sqlalchemy import insert

from matview.catalog import schema
from matview.catalog.check import check
from matview.catalog.connect import database
from matview.catalog.garbage import Garbage
from matview.catalog.groups import Groups
from matview.catalog.lease import Leases, fenced
from matview.catalog.migrate import lock_migrations, run_migrations, stored_number, upgrade
from matview.catalog.migrations import MIGRATIONS
from matview.catalog.observations import observe
from matview.catalog.records import Lease, Observations, VersionState
from matview.catalog.rounds import Rounds
from matview.catalog.sessions import Sessions
from matview.catalog.settings import CREATED_AT, WAREHOUSE_ID, StoredSettings
from matview.catalog.sources import Sources
from matview.catalog.store import PATIENCE, Clock, Store, Writing
from matview.catalog.tables import Tables
from matview.catalog.transactions import Transactions
from matview.catalog.version import check_versions, version_state, write_versions
from matview.catalog.views import Views
from matview.errors import BadSetting

FIRST_VN = 1


class Catalog:
    """An open catalog. Threads may share it; a forked child must open its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.lease = Leases(store)
        self.transactions = Transactions(store)
        self.tables = Tables(store)
        self.views = Views(store)
        self.groups = Groups(store)
        self.sources = Sources(store)
        self.rounds = Rounds(store)
        self.sessions = Sessions(store)
        self.garbage = Garbage(store)
        self.settings = StoredSettings(store)

    @classmethod
    def create(cls, url: str, *, versions: int, clock: Clock | None = None, patience: float = PATIENCE) -> Catalog:
        """A new catalog at currentVN 1, wholly or not at all; BadSetting if there is one already."""
        check_versions(versions)
        store = Store(database(url, patience=patience, must_exist=False), clock=clock, patience=patience)
        return _ready(store, lambda: store.write(lambda writing: _create(writing, store, versions)))

    @classmethod
    def open(cls, url: str, *, clock: Clock | None = None, patience: float = PATIENCE) -> Catalog:
        """The catalog that is there, brought to the schema of today and checked for contradictions.

        CatalogUnavailable: no such database, or it does not answer. CatalogTooNew: made by a newer Matview.
        CatalogCorrupt: no catalog in it, or one that cannot be read or contradicts itself.
        """
        store = Store(database(url, patience=patience), clock=clock, patience=patience)
        return _ready(store, lambda: _upgrade_and_check(store))

    @classmethod
    def exists(cls, url: str, *, patience: float = PATIENCE) -> bool:
        """Is there a catalog? A file that is no database is CatalogCorrupt; a PostgreSQL that is away, an error too."""
        store = Store(database(url, patience=patience), patience=patience)
        try:
            return not store.database.is_missing and store.read(stored_number) is not None
        finally:
            store.close()

    @property
    def waits(self) -> int:
        """How many of this object's transactions had to wait for another one."""
        return self._store.waits

    def version(self) -> VersionState:
        """currentVN, maintenanceActive and the bounds beside them, all of one moment."""
        return self._store.read(version_state)

    def set_versions(self, lease: Lease, n: int) -> VersionState:
        """Keep n versions from now on; BadSetting if that is fewer than before, or than two."""
        return fenced(self._store, lease, lambda writing: write_versions(writing, n))

    def observations(self, limit: int = 1000) -> Observations:
        """How long transactions, the gaps between them, and sessions have been, over the newest `limit` of each."""
        return self._store.read(lambda reading: observe(reading, limit))

    def now(self) -> float:
        """The clock that all users of this catalog share."""
        return self._store.read(lambda reading: reading.now())

    def close(self) -> None:
        """Give the connections back; every later call raises WarehouseClosed."""
        self._store.close()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ready(store: Store, prepare: Callable[[], None]) -> Catalog:
    try:
        prepare()
    except BaseException:
        store.close()
        raise
    return Catalog(store)


def _upgrade_and_check(store: Store) -> None:
    upgrade(store)
    store.read(check)


def _create(writing: Writing, store: Store, versions: int) -> None:
    lock_migrations(writing.connection)
    if stored_number(writing) is not None:
        raise BadSetting(f"there is a catalog already at {store.database.name}", help="open it instead")
    run_migrations(writing, MIGRATIONS)
    bounds = {"floor": 0, "gc_horizon": 0, "gc_claim": 0, "next_table_id": 1}
    version = {"id": 1, "current_vn": FIRST_VN, "maintenance_active": False, "versions": versions}
    version |= {"changed_vn": FIRST_VN, "defined_vn": FIRST_VN}
    writing.change(insert(schema.version).values(**version, **bounds))
    writing.change(insert(schema.lease).values(id=1, token=0, holder=None, acquired_at=0.0, expires_at=0.0))
    made = {WAREHOUSE_ID: str(uuid.uuid4()), CREATED_AT: repr(writing.now())}
    writing.put(schema.setting, [{"name": name, "value": value} for name, value in made.items()])
