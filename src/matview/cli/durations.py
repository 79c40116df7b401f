"""Times as people write and read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from matview.cli.report import UsageError

_SECONDS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def seconds(text: str) -> float:
    """'1 hour', '90 s', '1h 30min', '45': so many seconds."""
    position, total = 0, 0.0
    folded = text.lower()
    while position < len(folded) or not folded:
        found = _PART.match(folded, position)
        unit = _unit(found[2]) if found else None
        if found is None or unit is None:
            raise UsageError(f"{text!r} is no length of time", help="write it like '1 hour', '90 s' or '1h 30min'")
        total += float(found[1]) * unit
        position = found.end()
    if total <= 0:
        raise UsageError(f"{text!r} is no time at all")
    return total


def _unit(name: str) -> int | None:
    return _SECONDS.get(name) or _SECONDS.get(name.removesuffix("s")) if name else 1


def shown(length: float) -> str:
    """The two units that matter: '2 h 5 min', '12 s', '0.35 s'."""
    if length < 60:
        return f"{length:.0f} s" if length >= 10 else f"{length:.2g} s"
    for place, (size, name) in enumerate(_UNITS):
        if length >= size:
            smaller_size, smaller = _UNITS[place + 1] if place + 1 < len(_UNITS) else (1, "s")
            rest = int(length % size) // smaller_size
            return f"{int(length // size)} {name}" + (f" {rest} {smaller}" if rest else "")
    raise AssertionError(length)


def moment(at: float) -> str:
    """A time of day where the user is, to the second."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def clock(at: float, now: float) -> str:
    """The same, without the day if that is today."""
    day, time = moment(at).split()
    return time if moment(now).split()[0] == day else f"{day} {time}"
