"""What happens in the demo, as plain data; the time line, the log and the closing table are functions of it alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal

CheckKind = Literal["parts", "totals"]


@dataclass(frozen=True, slots=True)
class Started:
    """The doors open: `version` is current, and so many versions are kept of every tuple."""

    at: float
    version: int
    versions: int


@dataclass(frozen=True, slots=True)
class Began:
    """A maintenance transaction begins to make `version`."""

    at: float
    version: int


@dataclass(frozen=True, slots=True)
class Changed:
    """One statement of it is done."""

    at: float
    version: int
    meaning: str
    rows: int


@dataclass(frozen=True, slots=True)
class HalfCommitted:
    """One table of it is in its new state, another is not."""

    at: float
    version: int
    table: str


@dataclass(frozen=True, slots=True)
class Committed:
    """`version` is the current one."""

    at: float
    version: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A reader session, after so many seconds; no `version` for a reader that pins none. `latches`: see `Figures`."""

    at: float
    analyst: str
    version: int | None
    seconds: float = 0.0
    latches: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A query was answered, after so many seconds; `waits`: how often it had to wait for somebody else's lock."""

    at: float
    analyst: str
    seconds: float
    waits: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """Two answers of one session that must be the same: the whole, and the sum of its parts or the total kept."""

    at: float
    analyst: str
    kind: CheckKind
    city: str
    whole: Decimal
    other: Decimal

    @property
    def agrees(self) -> bool:
        return self.whole == self.other


@dataclass(frozen=True, slots=True)
class Expired:
    """The session was told that its version is no longer to be had."""

    at: float
    analyst: str
    latches: int = 0


@dataclass(frozen=True, slots=True)
class Closed:
    """The session ended as it should."""

    at: float
    analyst: str
    latches: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """Something that is no part of the story."""

    at: float
    who: str
    error: str


Event = Started | Began | Changed | HalfCommitted | Committed | Opened | Asked | Checked | Expired | Closed | Failed
KINDS: Sequence[type[Event]] = Event.__args__


def to_json(event: Event) -> str:
    """One line of text, for the pipe between processes."""
    return json.dumps({"event": type(event).__name__, **asdict(event)}, default=str)


def from_json(line: str) -> Event:
    """The event that the line was made of; ValueError if it was made of none."""
    fields: dict[str, Any] = json.loads(line)
    name = fields.pop("event", None)
    for kind in KINDS:
        if kind.__name__ == name:
            fields.update({key: Decimal(fields[key]) for key in ("whole", "other") if key in fields})
            return kind(**fields)
    raise ValueError(f"no such event: {name!r}")
