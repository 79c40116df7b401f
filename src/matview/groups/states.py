"""Effective states (section 3.3): the state of the base tables that each viewgroup shows.

effective(base, now)   =  now
effective(group, now)  =  effective(parent group, at the last refresh of the group)

A state is a version of the warehouse. `effective` is the definition itself, over the whole past; `States` is what it
comes to when it is carried along, a state per group. A view is filled when it is made: the group that it comes into,
new or not, is refreshed by the same version, or its views would show two states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from matview.groups.graph import BASE


@dataclass(frozen=True, slots=True)
class State:
    """A version, and a moment at which it was the newest."""

    version: int
    time: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """One version: the groups that it refreshed, and whether it changed base tables."""

    state: State
    refreshed: frozenset[str] = frozenset()
    changed: bool = False


@dataclass(frozen=True, slots=True)
class States:
    """The newest version, the last that changed a base table, and the effective state of every other group."""

    newest: State
    changed: int
    groups: Mapping[str, State] = field(default_factory=dict)

    def of(self, group: str) -> State:
        """The effective state of a group; the base group's is the newest."""
        return self.newest if group == BASE else self.groups[group]

    def after(self, step: Step, parent_of: Mapping[str, str]) -> States:
        """One version later. Of the groups refreshed by one version, parents are refreshed before their children."""
        later = replace(self, newest=step.state, changed=step.state.version if step.changed else self.changed)
        for group in sorted(step.refreshed, key=lambda name: _depth(name, parent_of)):
            later = replace(later, groups={**later.groups, group: later.of(parent_of[group])})
        return later

    def is_current(self, group: str) -> bool:
        """No base table has changed since the state that the group shows."""
        return self.of(group).version >= self.changed

    def behind(self, group: str, now: datetime) -> timedelta:
        """How old the state is that a group shows; nothing while it is as good as the newest."""
        return timedelta() if self.is_current(group) else max(now - self.of(group).time, timedelta())


def _depth(group: str, parent_of: Mapping[str, str]) -> int:
    return 0 if group == BASE else 1 + _depth(parent_of[group], parent_of)


def effective(steps: Sequence[Step], parent_of: Mapping[str, str], group: str) -> State:
    """The definition: the effective state of a group after these steps; the first step makes everything there is."""
    if group == BASE:
        return steps[-1].state
    last = max(number for number, step in enumerate(steps, 1) if number == 1 or group in step.refreshed)
    return effective(steps[:last], parent_of, parent_of[group])
