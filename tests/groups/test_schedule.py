"""When a group is due: texts, ticks, pauses, clocks that step back, and both changes to and from summer time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matview.errors import BadSchedule
from matview.groups.schedule import LONGEST, Cron, Every, OnDemand, Schedule, interval, is_due, next_due, parse, ticks

INTERVALS = {
    "5 minutes": timedelta(minutes=5),
    "1 hour 30 minutes": timedelta(minutes=90),
    "90 seconds": timedelta(seconds=90),
    "1 Day": timedelta(days=1),
    " 2weeks ": timedelta(weeks=2),
    "1 hour, 1 second": timedelta(seconds=3601),
    "1 minute 1 minute": timedelta(minutes=2),
}
NO_INTERVALS = [
    "",
    "5",
    "minutes",
    "0 minutes",
    "five minutes",
    "-5 minutes",
    "1.5 hours",
    "5 minutesx",
    "1 month",
    "1 year",
]
NO_INTERVALS += ["5 fortnights", "5 minutes or so", "4000 days", "999999999 weeks", "1 hour,, 2 minutes"]
NO_CRON = [
    "",
    "* * * *",
    "* * * * * *",
    "61 * * * *",
    "* 25 * * *",
    "0 0 30 2 *",
    "x * * * *",
    "*/0 * * * *",
    "0 0 31 2,4,6 *",
    "@daily",
    "0 6 * * MON-",
    "0 6 * * 8",
]
NO_ZONES = ["Oslo", "", "Europe", "../Europe/Oslo", "/etc/passwd", "Europe/Oslo ", "UTC+1"]


@pytest.mark.parametrize("text", INTERVALS)
def test_lengths_of_time(text: str) -> None:
    assert interval(text) == INTERVALS[text]
    assert parse(f"EVERY '{text}'") == parse(f"every {text}") == Every(INTERVALS[text])


@pytest.mark.parametrize("text", NO_INTERVALS)
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse(f"EVERY '{text}'")
    assert refused.value.help


@pytest.mark.parametrize("length", [timedelta(), timedelta(seconds=-5), timedelta(seconds=1.5), LONGEST * 2])
def test_what_is_no_length_for_an_interval(length: timedelta) -> None:
    with pytest.raises(BadSchedule):
        Every(length)


@pytest.mark.parametrize("line", NO_CRON)
def test_what_is_no_cron_line(line: str) -> None:
    with pytest.raises(BadSchedule):
        Cron(line)


@pytest.mark.parametrize("zone", NO_ZONES)
def test_what_is_no_time_zone(zone: str) -> None:
    with pytest.raises(BadSchedule, match="time zone") as refused:
        Cron("0 6 * * *", zone)
    assert "Europe/Oslo" in refused.value.help


@pytest.mark.parametrize("text", ["", "sometimes", "EVERY", "CRON", "ON DEMAND ONLY", "EVERY '5 minutes", "5 minutes"])
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(BadSchedule):
        parse(text)


LINES = ["*/5 * * * *", "0,45 1-3 * * *", "15 * * * *", "0 6 * * MON-FRI", "30 2 * * *", "15 */2 1,15 * *", "0 0 L * *"]
ZONES = ["UTC", "Europe/Oslo", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
seconds = st.integers(1, int(LONGEST.total_seconds())).map(lambda number: timedelta(seconds=number))
crons = st.builds(Cron, st.sampled_from(LINES), st.sampled_from(ZONES))
schedules: st.SearchStrategy[Schedule] = st.one_of(st.builds(Every, seconds), crons, st.just(OnDemand()))
CHANGES = [datetime(2026, 3, 8), datetime(2026, 3, 29), datetime(2026, 4, 5), datetime(2026, 10, 4)]
CHANGES += [datetime(2026, 10, 25), datetime(2026, 11, 1)]
moments = st.one_of(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(CHANGES).flatmap(
        lambda day: st.datetimes(day - timedelta(days=1), day + timedelta(days=2), timezones=st.just(UTC))
    ),
)


@settings(deadline=None)
@given(schedules)
def test_a_schedule_reads_as_it_prints(schedule: Schedule) -> None:
    assert parse(str(schedule)) == schedule
    assert parse(str(schedule).replace("'", "")) == schedule


def test_the_time_zone_is_utc_if_none_is_said() -> None:
    assert parse("cron '0 6 * * *'") == Cron("0 6 * * *", "UTC")


# ticks ----------------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.one_of(st.builds(Every, seconds.filter(lambda length: length.days < 300)), crons), moments)
def test_ticks_go_forward(schedule: Every | Cron, after: datetime) -> None:
    found = [after, *islice(ticks(schedule, after), 5)]
    assert all(earlier < later for earlier, later in pairwise(found))
    assert all(tick.tzinfo is UTC for tick in found[1:])


@settings(deadline=None)
@given(crons, moments)
def test_the_ticks_of_a_line_do_not_depend_on_where_one_begins(schedule: Cron, after: datetime) -> None:
    """Beginning again after each tick, as a scheduler does, misses none and repeats none."""
    found = list(islice(ticks(schedule, after), 6))
    again = [after]
    for _ in found:
        again.append(next(ticks(schedule, again[-1])))
    assert again[1:] == found


def oslo(text: str, fold: int = 0) -> datetime:
    return _local("Europe/Oslo", text, fold)


def new_york(text: str, fold: int = 0) -> datetime:
    return _local("America/New_York", text, fold)


def _local(zone: str, text: str, fold: int) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


# Summer time begins in Oslo on 29 March 2026 (02:00 becomes 03:00) and ends on 25 October (03:00 becomes 02:00);
# in New York on 8 March (02:00 becomes 03:00) and on 1 November (02:00 becomes 01:00).
SUMMER_TIME = {
    "Oslo, the day with a gap: at its end": (
        Cron("30 2 * * *", "Europe/Oslo"),
        oslo("2026-03-28T02:30"),
        [oslo("2026-03-29T03:00"), oslo("2026-03-30T02:30")],
    ),
    "Oslo, two times in the gap are one": (
        Cron("0,30 2 * * *", "Europe/Oslo"),
        oslo("2026-03-28T12:00"),
        [oslo("2026-03-29T03:00"), oslo("2026-03-30T02:00"), oslo("2026-03-30T02:30")],
    ),
    "Oslo, the time that comes twice: the first": (
        Cron("30 2 * * *", "Europe/Oslo"),
        oslo("2026-10-24T02:30"),
        [oslo("2026-10-25T02:30", fold=0), oslo("2026-10-26T02:30")],
    ),
    "Oslo, from between the two: not again": (
        Cron("30 2 * * *", "Europe/Oslo"),
        oslo("2026-10-25T02:15", fold=1),
        [oslo("2026-10-26T02:30")],
    ),
    "Oslo, six in the morning stays six": (
        Cron("0 6 * * *", "Europe/Oslo"),
        oslo("2026-10-24T06:00"),
        [oslo("2026-10-25T06:00"), oslo("2026-10-26T06:00")],
    ),
    "Oslo, every half hour goes on through the hour that comes twice": (
        Cron("*/30 * * * *", "Europe/Oslo"),
        oslo("2026-10-25T01:45"),
        [
            oslo("2026-10-25T02:00", fold=0),
            oslo("2026-10-25T02:30", fold=0),
            oslo("2026-10-25T02:00", fold=1),
            oslo("2026-10-25T02:30", fold=1),
            oslo("2026-10-25T03:00"),
        ],
    ),
    "Oslo, every half hour through the gap": (
        Cron("*/30 * * * *", "Europe/Oslo"),
        oslo("2026-03-29T01:15"),
        [oslo("2026-03-29T01:30"), oslo("2026-03-29T03:00"), oslo("2026-03-29T03:30")],
    ),
    "New York, the day with a gap": (
        Cron("15 2 * * *", "America/New_York"),
        new_york("2026-03-07T12:00"),
        [new_york("2026-03-08T03:00"), new_york("2026-03-09T02:15")],
    ),
    "New York, the time that comes twice": (
        Cron("30 1 * * *", "America/New_York"),
        new_york("2026-10-31T12:00"),
        [new_york("2026-11-01T01:30", fold=0), new_york("2026-11-02T01:30")],
    ),
    "New York, from between the two": (
        Cron("30 1 * * *", "America/New_York"),
        new_york("2026-11-01T01:10", fold=1),
        [new_york("2026-11-02T01:30")],
    ),
}


@pytest.mark.parametrize("name", SUMMER_TIME)
def test_summer_time(name: str) -> None:
    schedule, after, expected = SUMMER_TIME[name]
    assert list(islice(ticks(schedule, after), len(expected))) == expected


def test_an_interval_knows_no_summer_time() -> None:
    daily = Every(timedelta(days=1))
    assert next_due(daily, oslo("2026-03-28T12:00"), oslo("2026-03-28T13:00")) == oslo("2026-03-29T13:00")


# due ------------------------------------------------------------------------------------------------------------------

FIVE, HOURLY = Every(timedelta(minutes=5)), Cron("0 * * * *")
TEN = datetime(2026, 5, 5, 10, tzinfo=UTC)


def minutes(number: float) -> datetime:
    return TEN + timedelta(minutes=number)


DUE: dict[str, tuple[Schedule, datetime | None, datetime, datetime | None]] = {
    "never by itself": (OnDemand(), None, TEN, None),
    "never by itself, however long ago": (OnDemand(), minutes(-99999), TEN, None),
    "at first": (FIVE, None, TEN, TEN),
    "at first, by a line": (HOURLY, None, minutes(1), minutes(1)),
    "later": (FIVE, TEN, minutes(1), minutes(5)),
    "at the moment": (FIVE, TEN, minutes(5), minutes(5)),
    "after a pause": (FIVE, TEN, minutes(500), minutes(5)),
    "by a line": (HOURLY, minutes(0), minutes(1), minutes(60)),
    "by a line, after a pause": (HOURLY, minutes(0), minutes(500), minutes(60)),
    "a small step back": (FIVE, TEN, minutes(-1), minutes(5)),
    "a step back over the tick that was served": (HOURLY, minutes(0.1), minutes(-0.1), minutes(60)),
    "a step back of a whole period": (FIVE, TEN, minutes(-5), minutes(-5)),
    "a step back over two ticks": (HOURLY, minutes(0.1), minutes(-61), minutes(-61)),
    "a clock that was years ahead": (HOURLY, TEN + timedelta(days=9999), TEN, TEN),
}


@pytest.mark.parametrize("name", DUE)
def test_due(name: str) -> None:
    schedule, last, now, expected = DUE[name]
    assert next_due(schedule, last, now) == expected
    assert is_due(schedule, last, now) == (expected is not None and expected <= now)


STEADY = st.one_of(st.builds(Every, st.integers(1, 7200).map(lambda n: timedelta(seconds=n))), crons)


@settings(deadline=None)
@given(STEADY, moments, st.integers(0, 10**7))
def test_a_pause_is_caught_up_once(schedule: Every | Cron, last: datetime, pause: int) -> None:
    """However long nobody looked: due once, and then not before the next tick."""
    now = last + timedelta(seconds=pause)
    due = is_due(schedule, last, now)
    assert due == (next(ticks(schedule, last)) <= now)
    if due:
        assert not is_due(schedule, now, now)
        assert next_due(schedule, now, now) == next(ticks(schedule, now))


@settings(deadline=None)
@given(STEADY, moments, moments)
def test_nobody_waits_longer_than_two_periods(schedule: Every | Cron, last: datetime, now: datetime) -> None:
    """Whatever the clock said before."""
    due = next_due(schedule, last, now)
    assert due is not None
    coming = list(islice(ticks(schedule, now), 2))
    assert due <= coming[1]


@settings(deadline=None)
@given(STEADY, moments, st.lists(st.integers(-30, 300), min_size=5, max_size=60))
def test_small_steps_back_serve_no_tick_twice(schedule: Every | Cron, begin: datetime, steps: list[int]) -> None:
    """A clock that goes on, stops and steps back by seconds: between two refreshes there is always a tick."""
    schedule = Every(max(schedule.interval, timedelta(seconds=31 * 60))) if isinstance(schedule, Every) else schedule
    last = now = begin
    for step in steps:
        now += timedelta(seconds=step)
        if is_due(schedule, last, now):
            assert now > last and next(ticks(schedule, last)) <= now
            last = now
