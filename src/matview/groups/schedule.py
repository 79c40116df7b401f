"""When a viewgroup is due: every so often, by a cron line in a time zone, or when somebody asks.

A schedule is written as it prints: EVERY '5 minutes', CRON '0 6 * * *' AT TIME ZONE 'Europe/Oslo', ON DEMAND.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from matview.errors import BadSchedule

UNITS = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
LONGEST = timedelta(days=3660)
_PART = re.compile(r"\s*(\d{1,9})\s*([a-z]+?)s?\s*(?:,\s*)?(?![a-z])", re.IGNORECASE)
_TEXT = re.compile(
    r"\s*(?:(?P<demand>ON\s+DEMAND)"
    r"|EVERY\s+(?P<every_quote>'?)(?P<every>[^']*)(?P=every_quote)"
    r"|CRON\s+(?P<cron_quote>'?)(?P<cron>[^']*?)(?P=cron_quote)"
    r"(?:\s+AT\s+TIME\s+ZONE\s+(?P<zone_quote>'?)(?P<zone>[^']*)(?P=zone_quote))?)\s*",
    re.IGNORECASE,
)
_SOME_TIME = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Every:
    """So long after the last refresh began."""

    interval: timedelta

    def __post_init__(self) -> None:
        if self.interval < timedelta(seconds=1):
            raise BadSchedule(f"an interval of {self.interval} would never let a refresh end: a second is the least")
        if self.interval % timedelta(seconds=1):
            raise BadSchedule(f"an interval of {self.interval} is no whole number of seconds")
        if self.interval > LONGEST:
            raise BadSchedule("an interval of more than ten years")

    def __str__(self) -> str:
        return f"EVERY '{interval_text(self.interval)}'"


@dataclass(frozen=True, slots=True)
class Cron:
    """At the minutes that a line of five fields names, in a time zone.

    A line that names its minute and its hour goes by the clock on the wall: once on the day when its time comes twice,
    and at the end of the gap on the day when its time is left out. A line with a star there goes by elapsed time.
    """

    line: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        _zone(self.zone)
        if len(self.line.split()) != 5:
            raise BadSchedule(f"a cron line has five fields, {self.line!r} has {len(self.line.split())}")
        try:
            next(CronSim(self.line, _SOME_TIME))
        except CronSimError as error:
            raise BadSchedule(f"{self.line!r} is no cron line: {str(error).lower()}") from None
        except StopIteration:
            raise BadSchedule(f"the day that {self.line!r} names never comes") from None

    def __str__(self) -> str:
        return f"CRON '{self.line}' AT TIME ZONE '{self.zone}'"


@dataclass(frozen=True, slots=True)
class OnDemand:
    """When somebody asks, never by itself."""

    def __str__(self) -> str:
        return "ON DEMAND"


Schedule = Every | Cron | OnDemand


# texts ----------------------------------------------------------------------------------------------------------------


def parse(text: str) -> Schedule:
    """A schedule as it is written in a property, and as it prints; the quotes inside may be left out."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise BadSchedule(f"{text!r} is no schedule")
    if found["demand"]:
        return OnDemand()
    if found["every"] is not None:
        return every(found["every"])
    return Cron(found["cron"].strip(), (found["zone"] or "UTC").strip())


def every(text: str) -> Every:
    """'5 minutes', '1 hour 30 minutes', '90 seconds'."""
    return Every(interval(text))


def interval(text: str) -> timedelta:
    """The length of time that a text says: whole numbers of weeks, days, hours, minutes and seconds."""
    position, seconds = 0, 0
    while position < len(text) or not text:
        found = _PART.match(text, position)
        unit = UNITS.get(found[2].lower()) if found else None
        if found is None or unit is None:
            raise BadSchedule(f"{text!r} is no length of time")
        seconds += int(found[1]) * unit
        position = found.end()
    return timedelta(seconds=min(seconds, int(LONGEST.total_seconds()) + 1))


def interval_text(length: timedelta) -> str:
    """As `interval` reads it: '1 hour 30 minutes'."""
    left, parts = int(length.total_seconds()), []
    for name, unit in UNITS.items():
        number, left = divmod(left, unit)
        if number:
            parts.append(f"{number} {name}{'s' if number > 1 else ''}")
    return " ".join(parts)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadSchedule(
            f"there is no time zone {name!r}", help="a name like 'Europe/Oslo', 'America/New_York' or 'UTC'"
        ) from None


# when -----------------------------------------------------------------------------------------------------------------


def next_due(schedule: Schedule, last: datetime | None, now: datetime) -> datetime | None:
    """When a group is due whose last refresh began at `last`; at or before `now` means at once, None means never.

    However many ticks have passed since, it is due once: what follows is counted from the refresh that is made then.

    A clock may step back, so that `last` lies ahead of `now`. As long as that is less than a whole period, the tick
    that was served stays served, and the next one counts. From a whole period on, `last` says nothing: the group is
    due at once, and the refresh that is made then sets it right. So nobody waits much longer than two periods.
    """
    if isinstance(schedule, OnDemand):
        return None
    if last is None or _is_far_ahead(schedule, last, now):
        return now
    return next(ticks(schedule, last))


def is_due(schedule: Schedule, last: datetime | None, now: datetime) -> bool:
    """A refresh should begin now."""
    due = next_due(schedule, last, now)
    return due is not None and due <= now


def ticks(schedule: Every | Cron, after: datetime) -> Iterator[datetime]:
    """The moments, in UTC, at which a group would be due that is refreshed at each of them; without end."""
    at = after.astimezone(UTC)
    match schedule:
        case Every(length):
            while True:
                at += length
                yield at
        case Cron(line, zone):
            for tick in CronSim(line, after.astimezone(_zone(zone))):
                moment = tick.astimezone(UTC)
                if moment > at:  # a time that comes twice is told as its first, which may be over
                    at = moment
                    yield at


def _is_far_ahead(schedule: Every | Cron, last: datetime, now: datetime) -> bool:
    """Between `now` and a later `last` there is more than the one tick that `last` may have served."""
    if last <= now:
        return False
    if isinstance(schedule, Every):
        return last - now >= schedule.interval
    coming = ticks(schedule, now)
    next(coming)
    return next(coming) <= last
