"""How many versions to keep (section 5): from the pace of maintenance and the length of sessions seen.

nVNL guarantees that a session of up to (n-1)(i+m) - m never expires, where i is the least gap between two maintenance
transactions and m the length of the shortest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf

from matview.versions.layout import FEWEST_VERSIONS

MOST_VERSIONS = 8  # each version more is a set of columns more in every file, and a branch more in every CASE
FEWEST_TRANSACTIONS = 3
QUANTILE = 0.99


@dataclass(frozen=True, slots=True)
class Advice:
    """What `versions` guarantee at the pace seen (None: too little was seen), and how many would do."""

    versions: int
    guaranteed_seconds: float | None
    proposed_versions: int
    reason: str


def guaranteed(versions: int, gap: float, duration: float) -> float:
    """(n-1)(i+m) - m: a session no longer than this never expires."""
    if versions < FEWEST_VERSIONS or gap < 0 or duration < 0:
        raise ValueError(f"n >= {FEWEST_VERSIONS}, i >= 0, m >= 0: {versions}, {gap}, {duration}")
    return (versions - 1) * (gap + duration) - duration


def needed(length: float, gap: float, duration: float) -> float:
    """The least n that guarantees sessions of this length; infinite if maintenance takes no time and never pauses."""
    if gap + duration <= 0:
        return inf if length > 0 else FEWEST_VERSIONS
    return max(FEWEST_VERSIONS, 1 + ceil((length + duration) / (gap + duration)))


def advise(
    gaps: Sequence[float], durations: Sequence[float], session_lengths: Sequence[float], versions: int
) -> Advice:
    """Advice from gaps between, and durations of, maintenance transactions and lengths of sessions, all in seconds.

    Sessions count up to their 99th percentile, which is the longest while there are fewer than a hundred.
    """
    if len(durations) < FEWEST_TRANSACTIONS or not gaps:
        seen = f"{len(durations)} of {FEWEST_TRANSACTIONS} maintenance transactions seen"
        return Advice(versions, None, versions, f"too little to go on: {seen}")
    gap, duration = min(gaps), min(durations)
    sure = guaranteed(versions, gap, duration)
    pace = f"at least {_short(gap)} between maintenance transactions of at least {_short(duration)}"
    if not session_lengths:
        reason = f"no session has been seen; {pace} guarantee sessions of {_short(sure)}"
        return Advice(versions, sure, versions, reason)
    length = _quantile(session_lengths)
    proposed, verdict = _verdict(needed(length, gap, duration), versions)
    reason = f"sessions last up to {_short(length)}, {pace} guarantee {_short(sure)}: {verdict}"
    return Advice(versions, sure, proposed, reason)


def _verdict(need: float, versions: int) -> tuple[int, str]:
    """Never fewer than there are: versions cannot be lowered."""
    if need <= versions:
        spare = f"; {need:g} would do, but versions cannot be lowered" if need < versions else ""
        return versions, f"{versions} versions are enough{spare}"
    if need > MOST_VERSIONS:
        most = max(MOST_VERSIONS, versions)
        wanted = "no number of versions suffices" if need == inf else f"{need:g} versions would be needed"
        return most, f"{wanted}; more than {MOST_VERSIONS} are not proposed: maintain less often, or in larger steps"
    return int(need), f"{need:g} versions are needed: ALTER WAREHOUSE SET VERSIONS {need:g}"


def _quantile(lengths: Sequence[float]) -> float:
    """The least length that at least 99 % of all do not exceed."""
    return sorted(lengths)[ceil(QUANTILE * len(lengths)) - 1]


def _short(seconds: float) -> str:
    """Rounded down: nothing is promised that does not hold."""
    places = 1 if seconds >= 1 else 3
    return f"{floor(seconds * 10**places) / 10**places:g} s"
