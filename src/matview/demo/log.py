"""The events one line each, for a log that no terminal shows."""

from __future__ import annotations

from typing import assert_never

from matview.demo.events import (
    Asked,
    Began,
    Changed,
    Checked,
    Closed,
    Committed,
    Event,
    Expired,
    Failed,
    HalfCommitted,
    Opened,
    Started,
)


def line(event: Event, began: float) -> str | None:
    """What to say of it, and when it happened; None for what would only fill the page."""
    said = _said(event)
    return None if said is None else f"{event.at - began:6.1f} s  {said[0]:<12} {said[1]}"


def _said(event: Event) -> tuple[str, str] | None:
    match event:
        case Started(_, version, versions):
            return "warehouse", f"version {version} is current; {versions} versions are kept"
        case Began(_, version):
            return "maintenance", f"begins version {version}"
        case Changed(_, version, meaning, rows):
            return "maintenance", f"version {version}: {meaning}, {rows:,} rows"
        case HalfCommitted(_, version, table):
            return "maintenance", f"version {version}: {table} is written, other tables are not yet"
        case Committed(_, version):
            return "maintenance", f"commits version {version}"
        case Opened(_, analyst, version):
            return analyst, "begins to read" if version is None else f"opens a session at version {version}"
        case Asked():
            return None
        case Checked():
            return event.analyst, check_text(event)
        case Expired(_, analyst):
            return analyst, "is told that the session has expired, and begins anew"
        case Closed(_, analyst):
            return analyst, "closes the session"
        case Failed(_, who, error):
            return who, f"FAILED: {error}"
        case _:
            assert_never(event)


def check_text(check: Checked) -> str:
    """An amount and the amount it must be."""
    other = "its product lines" if check.kind == "parts" else "CityTotals"
    sign = "=" if check.agrees else "≠"
    return f"{check.city}: {check.whole:,} {sign} {check.other:,} by {other}{'' if check.agrees else '   CONTRADICTION'}"
