"""The state of a warehouse at one glance: versions, tables and views with their storage, sessions, advice.

Needs no Spark.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from matview.algebra.schema import RESERVED_PREFIX
from matview.catalog.catalog import Catalog
from matview.catalog.records import Lease, SessionRecord, TableRecord, VersionState
from matview.reading.groups import GroupStatus, groups_of
from matview.reading.sources import Ask, SourceStatus, sources_of
from matview.reading.views import ViewStatus, views_of
from matview.storage.glance import Glance
from matview.storage.snapshot import Snapshot
from matview.versions.adviser import Advice, advise
from matview.versions.expiry import global_expired
from matview.versions.layout import Layout


@dataclass(frozen=True, slots=True)
class TableStatus:
    """`overhead` is what the version columns add to a tuple, as a share of the bytes of the user's own columns.

    `readable_from`: the least version that a session of grain 'table' can read here. The `bytes` of a view are also
    those of its hidden parts.
    """

    name: str
    directory: str
    rows: int
    base_files: int
    overlay_files: int
    overlay_rows: int
    bytes: int
    overhead: float
    created_vn: int = 0
    readable_from: int = 0

    @property
    def overlay_share(self) -> float:
        return self.overlay_rows / self.rows if self.rows else float(self.overlay_rows > 0)


@dataclass(frozen=True, slots=True)
class Status:
    path: str
    version: VersionState
    maintenance: Lease | None
    tables: tuple[TableStatus, ...]
    sessions: tuple[SessionRecord, ...]
    advice: Advice
    now: float = 0.0
    views: tuple[ViewStatus, ...] = ()
    groups: tuple[GroupStatus, ...] = ()
    sources: tuple[SourceStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """How long a session can still read: `behind` so many versions, sure until version `sure_until` is being written.

    `over`: it has ended in all but name, and why. `lost`: the tables that it can no longer read.
    """

    behind: int
    sure_until: int
    lost: tuple[str, ...] = ()
    over: str | None = None


def status_of(catalog: Catalog, path: str, ask: Ask | None = None) -> Status:
    """`path` is the warehouse's directory, or the URI of one in an object store; `ask` asks sources what waits."""
    state = catalog.version()
    seen = catalog.observations()
    advice = advise(seen.gaps, seen.durations, (*seen.session_lengths, *seen.session_ages), state.versions)
    tables = _tables(catalog, path, state)
    sessions = tuple(catalog.sessions.list(open_only=True))
    views = tuple(views_of(catalog))
    groups = tuple(groups_of(catalog))
    sources = tuple(sources_of(catalog, ask))
    lease = catalog.lease.current()
    return Status(path, state, lease, tables, sessions, advice, catalog.now(), views, groups, sources)


def _tables(catalog: Catalog, path: str, state: VersionState) -> tuple[TableStatus, ...]:
    """Those that users see; a hidden one takes its place in the view that it serves."""
    root = path if "://" in path else str(Path(path).absolute())
    live = catalog.tables.live(state.current_vn)
    views, _ = catalog.views.graph()
    hidden: Counter[int | None] = Counter()
    for record in live:
        if record.is_hidden and record.id in views:
            hidden[views[record.id].owner_id] += _size(root, record)
    shown = [(record.id, table_status(root, record, state)) for record in live if not record.is_hidden]
    return tuple(replace(table, bytes=table.bytes + hidden[table_id]) for table_id, table in shown)


def _size(root: str, record: TableRecord) -> int:
    return sum(file.size for file in Glance(f"{root}/{record.directory}").snapshot().files)


def table_status(root: str, record: TableRecord, state: VersionState) -> TableStatus:
    glance = Glance(f"{root}/{record.directory}")
    snapshot = glance.snapshot()
    own, added = _bytes(glance, snapshot)
    newest = snapshot.facts(Layout(record.schema, state.versions)).newest
    return TableStatus(
        record.name,
        record.directory,
        sum(f.rows for f in snapshot.base),
        len(snapshot.base),
        len(snapshot.overlay),
        sum(f.rows for f in snapshot.overlay),
        sum(f.size for f in snapshot.files),
        added / own if own else 0.0,
        record.created_vn,
        max(record.created_vn, newest[-1] - 1),
    )


def outlook(session: SessionRecord, status: Status) -> Outlook:
    """What `status` says about a session of it: section 5, a session overlaps n-1 maintenance transactions safely."""
    state = status.version
    behind, sure_until = state.current_vn - session.version, session.version + state.versions
    lost = () if session.grain == "tuple" else _lost(session, status.tables)
    return Outlook(behind, sure_until, lost, _over(session, status))


def _lost(session: SessionRecord, tables: tuple[TableStatus, ...]) -> tuple[str, ...]:
    return tuple(table.name for table in tables if table.created_vn <= session.version < table.readable_from)


def _over(session: SessionRecord, status: Status) -> str | None:
    state = status.version
    if not session.live(status.now):
        return f"silent for longer than its {session.ttl:g} s to live"
    if session.version < max(state.gc_horizon, state.floor):
        return f"what version {session.version} needs may have been collected"
    if session.grain == "global" and global_expired(
        session.version, state.current_vn, state.maintenance_active, state.versions
    ):
        return f"version {session.version} is too far behind version {state.current_vn}"
    return None


def _bytes(glance: Glance, snapshot: Snapshot) -> tuple[int, int]:
    """Compressed bytes of the user's columns, and of everything that versions add, over the live files."""
    sizes: Counter[str] = Counter()
    for file in snapshot.files:
        sizes += glance.column_sizes(file)
    added = sum(size for column, size in sizes.items() if column.startswith(RESERVED_PREFIX))
    return sizes.total() - added, added
