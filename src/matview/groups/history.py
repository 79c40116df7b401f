"""What happened to a graph of views, as a list of moments: what each event was, and what every table then held.

Contents are any values that can be compared; `evaluate` gives the content of a view for the contents of its parents:
symbols and their composition in a model, bags and queries in a warehouse.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from matview.groups.assign import Assignment
from matview.groups.graph import BaseTable, Maintain, View


@dataclass(frozen=True, slots=True)
class Update:
    """A transaction changed base tables."""

    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Queried:
    """Somebody queried a table or a view."""

    name: str


@dataclass(frozen=True, slots=True)
class GroupRefresh:
    """A viewgroup was refreshed."""

    group: str


Event = Update | Queried | GroupRefresh


@dataclass(frozen=True, slots=True)
class Moment:
    """A database state: its number is its place in the history, and `event` is what led to it (None: the beginning).

    `stored`: the materialization of every table. `effective`: the number of the effective state of every table.
    `maintained`: the views that the event refreshed. `read`: the tables that it read to answer a query. `answer`: what
    a query was told.
    """

    event: Event | None
    stored: Mapping[str, Hashable]
    effective: Mapping[str, int]
    maintained: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    answer: Hashable = None


Evaluate = Callable[[str, tuple[Hashable, ...]], Hashable]


@dataclass(frozen=True, slots=True)
class History:
    """The moments of a graph with its assignment, oldest first."""

    assignment: Assignment
    evaluate: Evaluate
    moments: tuple[Moment, ...]
    _known: dict[tuple[str, str, int], Hashable] = field(default_factory=dict, repr=False, compare=False)

    def stored(self, name: str, state: int) -> Hashable:
        """The materialization of a table in a state."""
        return self.moments[state].stored[name]

    def value(self, name: str, state: int) -> Hashable:
        """What a query must be told: a deferred view's query over its parents' values, otherwise what is stored."""
        node = self.assignment.graph[name]
        if isinstance(node, View) and node.maintain is Maintain.DEFERRED:
            return self.over_parents(name, state)
        return self.stored(name, state)

    def over_parents(self, name: str, state: int) -> Hashable:
        """A view's query over the values of its parents in a state: what reference consistency compares with."""
        return self._remembered("parents", name, state)

    def over_base(self, name: str, state: int) -> Hashable:
        """A view's query over base tables in a state, views replaced by theirs: what base consistency compares with."""
        return self._remembered("base", name, state)

    def _remembered(self, kind: str, name: str, state: int) -> Hashable:
        if (kind, name, state) not in self._known:
            self._known[kind, name, state] = self._computed(kind, name, state)
        return self._known[kind, name, state]

    def _computed(self, kind: str, name: str, state: int) -> Hashable:
        node = self.assignment.graph[name]
        if isinstance(node, BaseTable):
            return self.stored(name, state)
        of = self.value if kind == "parents" else self.over_base
        return self.evaluate(name, tuple(of(parent, state) for parent in node.parents))

    def reference_states(self, name: str, content: Hashable, now: int) -> frozenset[int]:
        """The states up to now with which a content of a view is reference consistent."""
        return frozenset(state for state in range(now + 1) if self.over_parents(name, state) == content)
