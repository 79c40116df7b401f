"""What the catalog knows of sources and rounds: plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Consistency = Literal["strong", "complete"]
SourceState = Literal["adding", "active", "removing"]
RoundState = Literal["fixed", "computed", "installed", "done", "discarded"]


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a table at its source: the type there, and the Spark type that carries it."""

    name: str
    source_type: str
    type: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class SourceTableRecord:
    """A captured table: `name` at the source, `table` in the warehouse (`table_id` once it is there).

    `error`: why it is stopped, if it is; then nothing is taken over from it any more.
    """

    name: str
    table: str
    columns: tuple[StoredColumn, ...]
    key: tuple[str, ...] = ()
    identity: str = ""
    table_id: int | None = None
    replicate: bool = True
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source; its URL holds no password. `error`: what its last round failed of, if it did.

    `sequence` grows with everything that a capture under way would have to know of. `holder`: who is at it alone,
    adding it or reading it whole again, until `held_until` if he is not heard of again.
    """

    id: str
    name: str
    url: str
    mode: Consistency = "strong"
    state: SourceState = "adding"
    tables: tuple[SourceTableRecord, ...] = ()
    sequence: int = 0
    added_at: float = 0.0
    captured_at: float | None = None
    transactions: int = 0
    rows: int = 0
    error: str | None = None
    holder: str | None = None
    held_until: float = 0.0

    @property
    def going(self) -> tuple[SourceTableRecord, ...]:
        """The tables that are taken over from."""
        return tuple(table for table in self.tables if table.error is None)


@dataclass(frozen=True, slots=True)
class RoundPart:
    """The share of one source in a round: the set TID(old), for these tables of it, and where its changes are."""

    source_id: str
    tables: tuple[str, ...]
    taken: Mapping[str, Any]
    transactions: int = 0
    rows: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """A round: fixed -> computed -> installed (at version `vn`) -> done; or discarded, before it was installed."""

    number: int
    state: RoundState
    parts: tuple[RoundPart, ...]
    began_at: float = 0.0
    installed_at: float | None = None
    ended_at: float | None = None
    vn: int | None = None


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """What a maintenance transaction says of sources, taken over in the step that moves currentVN.

    `added` are active from then on, `removed` (by id) on their way out, rounds `installed`. `loaded`: sets that first
    states hold already, to be deleted at their sources; `resumed`: tables of `loaded` that go on, as they are now.
    """

    added: tuple[SourceRecord, ...] = ()
    removed: tuple[str, ...] = ()
    installed: tuple[int, ...] = ()
    loaded: tuple[RoundPart, ...] = ()
    resumed: tuple[tuple[str, SourceTableRecord], ...] = ()
    sequences: Mapping[str, int] = field(default_factory=dict)
    """Of sources, by id, that must not have moved on meanwhile."""

    def __bool__(self) -> bool:
        return any((self.added, self.removed, self.installed, self.loaded, self.resumed))
