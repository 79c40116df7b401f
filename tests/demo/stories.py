"""A little language for tests: a story in a few lines, each `seconds event fields`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

from matview.demo.events import (
    Asked,
    Began,
    Changed,
    Checked,
    Closed,
    Committed,
    Event,
    Expired,
    HalfCommitted,
    Opened,
    Started,
)

FIXTURES = Path(__file__).parent / "fixtures"


def read(text: str) -> list[Event]:
    return [_event(line.split()) for line in text.splitlines() if line.strip()]


def _event(words: list[str]) -> Event:
    at, kind, *rest = float(words[0]), *words[1:]
    return MADE[str(kind)](at, *rest)


MADE: Mapping[str, Callable[..., Event]] = {
    "started": lambda at, version, versions: Started(at, int(version), int(versions)),
    "began": lambda at, version: Began(at, int(version)),
    "changed": lambda at, version, rows: Changed(at, int(version), "late receipts", int(rows)),
    "half": lambda at, version: HalfCommitted(at, int(version), "DailySales"),
    "committed": lambda at, version: Committed(at, int(version)),
    "opened": lambda at, analyst, version: Opened(at, analyst, None if version == "-" else int(version)),
    "asked": lambda at, analyst, seconds: Asked(at, analyst, float(seconds)),
    "checked": lambda at, who, whole, other: Checked(at, who, "parts", "San Jose, CA", Decimal(whole), Decimal(other)),
    "expired": lambda at, analyst: Expired(at, analyst),
    "closed": lambda at, analyst: Closed(at, analyst),
}
