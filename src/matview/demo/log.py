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
        case Began() | Changed() | HalfCommitted() | Committed():
            return "maintenance", _of_maintenance(event)
        case Opened() | Checked() | Expired() | Closed():
            return event.analyst, _of_reading(event)
        case Asked():
            return None
        case Failed(_, who, error):
            return who, f"FAILED: {error}"
        case _:
            assert_never(event)


def _of_maintenance(event: Began | Changed | HalfCommitted | Committed) -> str:
    match event:
        case Began(_, version):
            return f"begins version {version}"
        case Changed(_, version, meaning, rows):
            return f"version {version}: {meaning}, {rows:,} rows"
        case HalfCommitted(_, version, table):
            return f"version {version}: {table} is written, other tables are not yet"
        case Committed(_, version):
            return f"commits version {version}"
        case _:
            assert_never(event)


def _of_reading(event: Opened | Checked | Expired | Closed) -> str:
    match event:
        case Opened(version=None):
            return "begins to read"
        case Opened(version=version):
            return f"opens a session at version {version}"
        case Checked():
            return check_text(event)
        case Expired():
            return "is told that the session has expired, and begins anew"
        case Closed():
            return "closes the session"
        case _:
            assert_never(event)


def check_text(check: Checked) -> str:
    """An amount and the amount it must be."""
    other = "its product lines" if check.kind == "parts" else "CityTotals"
    if check.agrees:
        return f"{check.city}: {check.whole:,} = {check.other:,} by {other}"
    return f"{check.city}: {check.whole:,} ≠ {check.other:,} by {other}   CONTRADICTION"
