"""Little languages for tests: a story in a few lines, each `seconds what who-or-version more`."""

from __future__ import annotations

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
    at = float(words[0])
    match words[1:]:
        case ["started", version, versions]:
            return Started(at, int(version), int(versions))
        case ["began", version]:
            return Began(at, int(version))
        case ["changed", version, rows]:
            return Changed(at, int(version), "late receipts", int(rows))
        case ["half", version]:
            return HalfCommitted(at, int(version), "DailySales")
        case ["committed", version]:
            return Committed(at, int(version))
        case ["opened", analyst, version]:
            return Opened(at, analyst, None if version == "-" else int(version))
        case ["asked", analyst, seconds]:
            return Asked(at, analyst, float(seconds))
        case ["checked", analyst, whole, other]:
            return Checked(at, analyst, "parts", "San Jose, CA", Decimal(whole), Decimal(other))
        case ["expired", analyst]:
            return Expired(at, analyst)
        case ["closed", analyst]:
            return Closed(at, analyst)
    raise ValueError(f"no event: {words}")
