"""What the catalog tells its callers, and what they tell it: plain frozen data, no connection behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from matview.algebra.schema import RESERVED_PREFIX, Schema
from matview.catalog.source_records import SourceChanges
from matview.errors import BadDefinition, TableExists
from matview.groups.graph import Maintain

TransactionState = Literal["active", "committing", "committed", "aborted"]
Grain = Literal["tuple", "table", "global"]
EndReason = Literal["closed", "dead", "expired"]
RefreshPolicy = Literal["auto", "incremental", "strict", "full"]


@dataclass(frozen=True, slots=True)
class VersionState:
    """The paper's relation Version(currentVN, maintenanceActive), read at one moment, and the bounds beside it.

    Sessions with a version below `floor` have expired. What versions below `gc_horizon` need may have been removed.
    """

    current_vn: int
    maintenance_active: bool
    versions: int
    floor: int
    gc_horizon: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one maintenance transaction; `token` is greater than that of every lease before it."""

    token: int
    holder: str
    acquired_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """One maintenance transaction; `journal` names the tables it may have touched since it began to commit."""

    token: int
    vn: int
    state: TransactionState
    holder: str
    began_at: float
    ended_at: float | None
    journal: tuple[int, ...]
    summary: Mapping[str, object]
    error: str | None
    tail_done: bool


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A table of the warehouse, to be seen at versions created_vn <= v < dropped_vn (None: without end)."""

    id: int
    name: str
    schema: Schema
    properties: Mapping[str, object]
    directory: str
    created_vn: int
    dropped_vn: int | None
    next_rid: int

    @property
    def is_hidden(self) -> bool:
        """It serves a view; users do not see it."""
        return self.name.startswith(RESERVED_PREFIX)


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that a commit is to create, under an id reserved before."""

    id: int
    name: str
    schema: Schema
    directory: str
    properties: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            raise BadDefinition("a table needs a name")


def remote_of(table: TableRecord | NewTable) -> tuple[str | None, int]:
    """The source at which a table stays, if it does, and about how many rows it had there when it was added;
    0 if that is not known."""
    found = table.properties.get("remote")
    if not isinstance(found, dict):
        return None, 0
    return str(found["source"]), int(found["rows"])


def staying_at(source: str, rows: int) -> dict[str, object]:
    """The properties of such a table."""
    return {"remote": {"source": source, "rows": rows}}


@dataclass(frozen=True, slots=True)
class GarbageFile:
    """A file that no table refers to any more; it may be removed once no query can still be reading it."""

    table_id: int
    path: str


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """A table that holds the result of `query`. A hidden one serves the view `owner_id`.

    `reason` says why it cannot be maintained from changes, if so. `maintain` says when it is refreshed; `viewgroup` and
    `schedule` (as it prints) are those declared for it, if any were.
    """

    table_id: int
    query: str
    policy: RefreshPolicy
    owner_id: int | None = None
    reason: str | None = None
    maintain: Maintain = Maintain.SNAPSHOT
    viewgroup: str | None = None
    schedule: str | None = None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A viewgroup that somebody declared; its schedule as it prints."""

    name: str
    schedule: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class GroupState:
    """What a viewgroup shows: the base tables of version `version`, which was the newest at time `at`.

    `refreshed_at`: when its last refresh began.
    """

    group: str
    version: int
    at: float
    refreshed_at: float


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """What a maintenance transaction does to viewgroups, beside their views.

    `refreshed` moved to this version, each under the one that `parent_of` names; `gone` have no views any more.
    `renamed`: the old name and the new one.
    """

    made: tuple[GroupRecord, ...] = ()
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    refreshed: frozenset[str] = frozenset()
    parent_of: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A view `child` reads `parent`, and has taken over its changes up to version `consumed`.

    `anew`: the parent went on from a state to which no changes lead, and the view has yet to be computed from there.
    """

    parent_id: int
    child_id: int
    consumed: int
    anew: bool = False


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file whose tuples changed at one version."""

    path: str
    level: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class LogEntry:
    """How a table changed at a version: how many tuples, where they are, and the columns that updates touched."""

    table_id: int
    vn: int
    inserted: int
    updated: int
    deleted: int
    columns: frozenset[str]
    files: tuple[LoggedFile, ...]


@dataclass(frozen=True, slots=True)
class RefreshRecord:
    """What one refresh of a view did, and what it cost against what was estimated, for the driver or for Spark."""

    view: str
    vn: int
    strategy: str
    estimated: float
    seconds: float
    rows: int
    refreshed_at: float = 0.0
    at_hand: bool = False


@dataclass(frozen=True, slots=True)
class CatalogChanges:
    """All that a maintenance transaction changes in the catalog, taken over in one step by its commit.

    A table may be both created and dropped: it is then never seen, and its directory is collected like any other.
    """

    created: tuple[NewTable, ...] = ()
    dropped: tuple[int, ...] = ()
    next_rid: Mapping[int, int] = field(default_factory=dict)
    garbage: tuple[GarbageFile, ...] = ()
    views: tuple[ViewRecord, ...] = ()
    edges: tuple[Edge, ...] = ()
    log: tuple[LogEntry, ...] = ()
    refreshes: tuple[RefreshRecord, ...] = ()
    groups: GroupChanges = GroupChanges()
    sources: SourceChanges = field(default_factory=SourceChanges)
    changed: bool = False
    """Base tables have other rows than before."""
    defined: bool = False
    """Tables, views or viewgroups were made, altered or dropped."""
    summary: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len({table.id for table in self.created}) != len(self.created):
            raise BadDefinition("two tables of one transaction have the same id")
        staying = [table.name.casefold() for table in self.created if table.id not in self.dropped]
        if twice := sorted({name for name in staying if staying.count(name) > 1}):
            raise TableExists(f"the transaction creates two tables of the name {twice[0]!r}")
        if any(rid < 0 for rid in self.next_rid.values()):
            raise BadDefinition("row identities are not negative")


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A reader session: it reads `version`, and lives as long as it is open and its heart beats within `ttl`."""

    id: str
    version: int
    holder: str
    grain: Grain
    ttl: float
    opened_at: float
    heartbeat_at: float
    closed_at: float | None
    reason: EndReason | None

    def live(self, now: float) -> bool:
        """Open, and heard of within `ttl`."""
        return self.closed_at is None and self.heartbeat_at + self.ttl > now


@dataclass(frozen=True, slots=True)
class Observations:
    """What the adviser needs (section 5 of the paper), all in seconds, oldest first.

    `durations`: committed maintenance transactions (the paper's m); `gaps`: from the end of one to the begin of the
    next (the paper's i); `session_lengths`: sessions that have ended; `session_ages`: sessions still open.
    """

    durations: tuple[float, ...]
    gaps: tuple[float, ...]
    session_lengths: tuple[float, ...]
    session_ages: tuple[float, ...]
