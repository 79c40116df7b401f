"""Was a history of a view consistent with the histories of its sources? (Section 2 of the paper, M13.)

strong     every version of the view is its query over some states of the sources, one of each, and these never go back
complete   and every state of each source is there, one at a time
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product
from typing import Any

States = Sequence[Sequence[Any]]
"""Of each source its states, in the order in which they were committed."""
Query = Callable[..., Hashable]
Vector = tuple[int, ...]
"""Which state of each source."""


def strongly(versions: Sequence[Hashable], sources: States, query: Query) -> list[Vector] | None:
    """For each version the states that explain it, in order; None if there is no such explanation."""
    ways: list[list[tuple[Vector, ...]]] = [[()]]
    for version in versions:
        ending = _explained(version, sources, query)
        paths = [(*path, here) for path in ways[-1] for here in ending if not path or _not_before(path[-1], here)]
        ways.append(_shortest(paths))
        if not paths:
            return None
    return list(ways[-1][0])


def completely(versions: Sequence[Hashable], sources: States, query: Query) -> bool:
    """The versions, without repetitions, go through all states of all sources, one step of one source at a time."""
    start = tuple(0 for _ in sources)
    end = tuple(len(states) - 1 for states in sources)
    reached = {start} if versions and query(*_at(sources, start)) == versions[0] else set()
    for version in versions[1:]:
        steps = {after for before in reached for after in (before, *_next(before, end))}
        reached = {vector for vector in steps if query(*_at(sources, vector)) == version}
    return end in reached


def _explained(version: Hashable, sources: States, query: Query) -> list[Vector]:
    vectors = product(*(range(len(states)) for states in sources))
    return [vector for vector in vectors if query(*_at(sources, vector)) == version]


def _at(sources: States, vector: Vector) -> list[Any]:
    return [states[number] for states, number in zip(sources, vector, strict=True)]


def _not_before(one: Vector, other: Vector) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def _shortest(paths: list[tuple[Vector, ...]]) -> list[tuple[Vector, ...]]:
    """One path to each of the states that are not after another: what can follow a later one can follow it, too."""
    ends = {path[-1]: path for path in paths}
    return [path for end, path in ends.items() if not any(other != end and _not_before(other, end) for other in ends)]


def _next(vector: Vector, end: Vector) -> Iterator[Vector]:
    for place, number in enumerate(vector):
        if number < end[place]:
            yield (*vector[:place], number + 1, *vector[place + 1 :])
