"""What paper C observes in Figure 5, held against what was measured here."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Point:
    """One policy at one update ratio: seconds in all, refreshes of views, mean seconds of an update and of a query."""

    elapsed: float
    refreshes: int
    update: float | None
    query: float | None


Curves = dict[str, dict[float, Point]]
"""Points by policy and by update ratio."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the paper says of a graph, whether it holds here, and what was measured."""

    graph: str
    said: str
    holds: bool
    measured: str

    def __str__(self) -> str:
        return f"({self.graph}) {self.said}: {'holds' if self.holds else 'does not hold here'}; {self.measured}"


def observations(curves: Curves, periods: Sequence[str]) -> list[Observation]:
    """Those that what was measured allows; `periods` are the snapshot policies, the most frequent first."""
    found: list[Observation] = []
    for graph, said, needed, check in _SAID:
        if all(policy in curves for policy in needed):
            result = check(curves)
            if result is not None:
                found.append(Observation(graph, said, *result))
    found += _snapshots(curves, periods)
    return sorted(found, key=lambda observation: observation.graph)


Result = tuple[bool, str] | None
Check = Callable[[Curves], Result]


def _values(curves: Curves, policy: str, what: Callable[[Point], float | None]) -> dict[float, float]:
    return {ratio: value for ratio, point in curves[policy].items() if (value := what(point)) is not None}


def _line(values: dict[float, float]) -> tuple[float, float] | None:
    """The slope of the best line, and how much of the variation it explains."""
    if len(values) < 3 or len(set(values.values())) == 1:
        return None
    slope, _ = statistics.linear_regression(list(values), list(values.values()))
    return slope, statistics.correlation(list(values), list(values.values())) ** 2


def _mean(values: dict[float, float]) -> float:
    return statistics.fmean(values.values()) if values else 0.0


def _at_common(one: dict[float, float], other: dict[float, float]) -> tuple[float, float]:
    """Means over the ratios that both have."""
    both = sorted(set(one) & set(other))
    return _mean({r: one[r] for r in both}), _mean({r: other[r] for r in both})


def _elapsed(point: Point) -> float:
    return point.elapsed


def _refreshes(point: Point) -> float:
    return point.refreshes


def _update(point: Point) -> float | None:
    return point.update


def _query(point: Point) -> float | None:
    return point.query


# graph (a): elapsed time ----------------------------------------------------------------------------------------------


def _grows_by_line(policy: str, what: Callable[[Point], float]) -> Check:
    def check(curves: Curves) -> Result:
        line = _line(_values(curves, policy, what))
        return None if line is None else (line[0] > 0 and line[1] >= 0.9, f"slope {line[0]:.1f}, r² {line[1]:.2f}")

    return check


def _less_at_high_ratios(policy: str) -> Check:
    def check(curves: Curves) -> Result:
        high = [r for r in curves[policy] if r >= 0.75 and r in curves["immediate"]]
        if not high:
            return None
        ratios = {r: curves[policy][r].elapsed / curves["immediate"][r].elapsed for r in high}
        told = ", ".join(f"{value:.2f} at {r:g}" for r, value in ratios.items())
        return all(value < 1 for value in ratios.values()), f"of immediate: {told}{_why_not(curves, policy, ratios)}"

    return check


def _why_not(curves: Curves, policy: str, ratios: dict[float, float]) -> str:
    """A query that brings views up to date, against the updates that it saves that work."""
    worst = max(ratios, key=lambda r: ratios[r])
    late, at_once = curves[policy][worst], curves["immediate"][worst]
    if ratios[worst] < 1 or late.query is None or at_once.update is None:
        return ""
    return (
        f"; at {worst:g} a query takes {late.query:.2f} s with its refreshes, {late.refreshes} in all, where an update "
        f"takes {at_once.update:.2f} s with its own, {at_once.refreshes} in all"
    )


def _drops_at_the_end(curves: Curves) -> Result:
    known = curves["deferred"]
    last = [r for r in sorted(known) if r < 1][-1:]
    if 1.0 not in known or not last or last[0] < 0.75:
        return None
    before, after = known[last[0]].elapsed, known[1.0].elapsed
    return after < before, f"{before:.1f} s at {last[0]:g}, {after:.1f} s at 1"


def _alike_at_low_ratios(curves: Curves) -> Result:
    low = [r for r in curves["deferred"] if 0 < r <= 0.1 and r in curves["immediate"]]
    if not low:
        return None
    ratios = [curves["deferred"][r].elapsed / curves["immediate"][r].elapsed for r in low]
    told = ", ".join(f"{value:.2f} at {r:g}" for r, value in zip(low, ratios, strict=True))
    return all(0.75 <= value <= 1.33 for value in ratios), f"deferred / immediate {told}"


def _updates_cost_more(curves: Curves) -> Result:
    update, query = _mean(_values(curves, "never", _update)), _mean(_values(curves, "never", _query))
    line = _line(_values(curves, "never", _elapsed))
    if line is None or not update or not query:
        return None
    told, elapsed = f"an update takes {update:.2f} s, a query {query:.2f} s", _values(curves, "never", _elapsed)
    if line[0] <= 0 and update > query and max(elapsed, key=lambda r: elapsed[r]) == min(elapsed):
        told += f"; the first point is the slowest, {elapsed[min(elapsed)]:.1f} s: its queries compile code"
    return line[0] > 0, told


def _snapshots(curves: Curves, periods: Sequence[str]) -> list[Observation]:
    known = [policy for policy in periods if policy in curves]
    if len(known) < 2:
        return []
    means = {policy: _mean(_values(curves, policy, _elapsed)) for policy in known}
    falls = all(means[one] >= means[two] for one, two in pairwise(known))
    told = ", ".join(f"{policy} {seconds:.1f} s" for policy, seconds in means.items())
    return [Observation("a", "the larger the interval, the faster the snapshot policy", falls, told)]


# graph (b): refreshes -------------------------------------------------------------------------------------------------


def _semi_ellipse(curves: Curves) -> Result:
    counts = _values(curves, "deferred", _refreshes)
    inside = {r: n for r, n in counts.items() if 0 < r < 1}
    if not inside or not {0.0, 1.0} <= set(counts):
        return None
    top = max(inside, key=lambda r: inside[r])
    holds = counts[0.0] == counts[1.0] == 0 < inside[top]
    return holds, f"{counts[0.0]:.0f} at 0, at most {inside[top]:.0f} at {top:g}, {counts[1.0]:.0f} at 1"


def _between(curves: Curves) -> Result:
    means = {policy: _mean(_values(curves, policy, _refreshes)) for policy in ("immediate", "combined", "deferred")}
    low, high = sorted((means["immediate"], means["deferred"]))
    told = ", ".join(f"{policy} {count:.1f}" for policy, count in means.items())
    return low <= means["combined"] <= high, f"on average {told}"


# graphs (c) and (d): updates and queries ------------------------------------------------------------------------------


def _times(policy: str, other: str, what: Callable[[Point], float | None], low: float, high: float) -> Check:
    def check(curves: Curves) -> Result:
        one, two = _at_common(_values(curves, policy, what), _values(curves, other, what))
        if not one or not two:
            return None
        return low <= one / two <= high, f"{policy} {one:.2f} s, {other} {two:.2f} s: {one / two:.2f} times"

    return check


def _halves_queries(curves: Curves) -> Result:
    found = _times("combined", "deferred", _query, 0.3, 0.7)(curves)
    if found is None or found[0]:
        return found
    ours, theirs = (_mean(_values(curves, policy, _refreshes)) for policy in ("combined", "deferred"))
    why = (
        f"; {ours:.0f} refreshes against {theirs:.0f}: most views wait for queries in either"
        if ours < 2 * theirs
        else ""
    )
    return found[0], found[1] + why


MANY = float("inf")
_SAID: tuple[tuple[str, str, tuple[str, ...], Check], ...] = (
    (
        "a",
        "immediate: elapsed time grows with the update ratio, along a line",
        ("immediate",),
        _grows_by_line("immediate", _elapsed),
    ),
    (
        "a",
        "deferred: less than immediate at high update ratios",
        ("immediate", "deferred"),
        _less_at_high_ratios("deferred"),
    ),
    (
        "a",
        "combined: less than immediate at high update ratios",
        ("immediate", "combined"),
        _less_at_high_ratios("combined"),
    ),
    ("a", "deferred: a sudden drop at update ratio 1", ("deferred",), _drops_at_the_end),
    ("a", "immediate and deferred are alike at low update ratios", ("immediate", "deferred"), _alike_at_low_ratios),
    ("a", "never refreshed: elapsed time grows because updates cost more than queries", ("never",), _updates_cost_more),
    (
        "b",
        "immediate: refreshes grow with the update ratio, along a line",
        ("immediate",),
        _grows_by_line("immediate", _refreshes),
    ),
    (
        "b",
        "deferred: roughly half an ellipse, none without updates and none without queries",
        ("deferred",),
        _semi_ellipse,
    ),
    ("b", "combined: between immediate and deferred", ("immediate", "deferred", "combined"), _between),
    (
        "c",
        "immediate: updates cost significantly more",
        ("immediate", "never"),
        _times("immediate", "never", _update, 1.5, MANY),
    ),
    (
        "c",
        "deferred: updates cost what they do without views to maintain",
        ("deferred", "never"),
        _times("deferred", "never", _update, 0.0, 1.1),
    ),
    (
        "d",
        "deferred: queries cost significantly more than with immediate",
        ("deferred", "immediate"),
        _times("deferred", "immediate", _query, 1.5, MANY),
    ),
    (
        "d",
        "immediate: queries do no maintenance",
        ("immediate", "never"),
        _times("immediate", "never", _query, 0.0, 1.25),
    ),
    (
        "d",
        "combined: query time goes down by about half against deferred",
        ("combined", "deferred"),
        _halves_queries,
    ),
)
