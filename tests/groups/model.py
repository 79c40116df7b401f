"""The paper's four algorithms (section 3.2) over symbols, writing the history that the properties are held against.

A base table holds the number of its last update, a view a symbol for "this view's query over those contents". So two
contents are equal only if everything that went into them is: a view that is wrong in any way is seen to be.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator

from matview.groups.assign import Assignment
from matview.groups.graph import BASE, Maintain, View
from matview.groups.history import Event, GroupRefresh, History, Moment, Queried, Update


class Terms:
    """Symbols for queries over contents; equal ones are the same number."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[Hashable, ...]], int] = {}

    def __call__(self, name: str, contents: tuple[Hashable, ...]) -> Hashable:
        return name, self._known.setdefault((name, contents), len(self._known))


class Model:
    """A database with one user. Each public method is one event."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.graph = assignment.graph
        self.evaluate = Terms()
        self.clock = 0
        self.stored: dict[str, Hashable] = {}
        self.changed: dict[str, int] = {}
        self.refreshed: dict[str, int] = {}
        self.effective: dict[str, int] = dict.fromkeys(assignment.groups, 0)
        self.moments: list[Moment] = []
        for name in self.graph.order:
            self._make(name)
        self._begin()
        self._end(None)

    @property
    def history(self) -> History:
        return History(self.assignment, self.evaluate, tuple(self.moments))

    def run(self, event: Event) -> None:
        match event:
            case Update(names):
                self.update(names)
            case Queried(name):
                self.query(name)
            case GroupRefresh(group):
                self.refresh_viewgroup(group)

    # events -----------------------------------------------------------------------------------------------------------

    def update(self, tables: tuple[str, ...]) -> None:
        self._begin()
        self.makesafe(tables)
        self._end(Update(tables))

    def query(self, name: str) -> None:
        self._begin()
        node = self.graph[name]
        if isinstance(node, View) and node.maintain is Maintain.DEFERRED:
            self.refresh_deferred_view(node)
        self.read.add(name)
        self._end(Queried(name), self.stored[name])

    def refresh_viewgroup(self, group: str) -> None:
        self._begin()
        self.refresh_group(group)
        self.effective[group] = self.effective_at_refresh(group)
        self._end(GroupRefresh(group))

    # the algorithms ---------------------------------------------------------------------------------------------------

    def makesafe(self, tables: tuple[str, ...]) -> None:
        """Algorithm 3.1 for base tables: update them, then every immediate view of the base group, in order."""
        for table in tables:
            self._write(table, ("update", self.clock))
        members = set(self.assignment.members(BASE))
        waiting = set().union(*(self.graph.descendants(table) for table in tables)) & members
        self._in_order(waiting, Maintain.IMMEDIATE)

    def makesafe_view(self, view: View, content: Hashable) -> None:
        """Algorithm 3.1 for a view."""
        self._write(view.name, content)

    def refresh(self, view: View) -> None:
        """Algorithm 3.2."""
        self.maintained.add(view.name)
        self.read.update(view.parents)
        content = self.evaluate(view.name, tuple(self.stored[parent] for parent in view.parents))
        if content != self.stored[view.name]:
            self.makesafe_view(view, content)
        self.refreshed[view.name] = self.clock

    def refresh_group(self, group: str) -> None:
        """Algorithm 3.3: every snapshot view of the group, parents before children.

        It is the turn of the group's cycle: a view that has another, against Rule 3, waits for its own.
        """
        nodes = [self.graph[name] for name in self.assignment.members(group)]
        cycles = (None, self.assignment.groups[group].schedule)
        waiting = {node.name for node in nodes if isinstance(node, View) and node.cycle in cycles}
        self._in_order(waiting, Maintain.SNAPSHOT)

    def refresh_deferred_view(self, view: View) -> None:
        """Algorithm 3.4."""
        if self.needs_refresh(view):
            for parent in self.same_group_parents(view):
                if parent.maintain is Maintain.DEFERRED:
                    self.refresh_deferred_view(parent)
            self.refresh(view)

    def same_group_parents(self, view: View) -> list[View]:
        group = self.assignment.group_of
        parents = [self.graph[name] for name in view.parents if group[name] == group[view.name]]
        return [parent for parent in parents if isinstance(parent, View)]

    def needs_refresh(self, view: View) -> bool:
        """The quick check of section 4: a leaf of the deferred views under it was changed since it was refreshed."""
        return any(self.changed[leaf] > self.refreshed[view.name] for leaf in self.leaves(view))

    def leaves(self, view: View) -> Iterator[str]:
        """What lies below a deferred view and the deferred views that it reads."""
        for name in view.parents:
            parent = self.graph[name]
            if isinstance(parent, View) and parent.maintain is Maintain.DEFERRED:
                yield from self.leaves(parent)
            else:
                yield name

    def effective_at_refresh(self, group: str) -> int:
        """Section 3.3: the parent group's effective state, as it is now."""
        return self.current_effective(self.assignment.parent(group))

    def current_effective(self, group: str) -> int:
        return len(self.moments) if group == BASE else self.effective[group]

    # parts ------------------------------------------------------------------------------------------------------------

    def _in_order(self, waiting: set[str], policy: Maintain) -> None:
        """While there is a view of the policy none of whose parents waits: refresh it."""
        while ready := [name for name in sorted(waiting) if self._is_ready(name, waiting, policy)]:
            self.refresh(self.graph[ready[0]])  # type: ignore[arg-type]
            waiting.remove(ready[0])

    def _is_ready(self, name: str, waiting: Iterable[str], policy: Maintain) -> bool:
        node = self.graph[name]
        return isinstance(node, View) and node.maintain is policy and not set(node.parents) & set(waiting)

    def _make(self, name: str) -> None:
        """A view is materialized when it is defined."""
        node = self.graph[name]
        if isinstance(node, View):
            self.stored[name] = self.evaluate(name, tuple(self.stored[parent] for parent in node.parents))
            self.refreshed[name] = 0
        else:
            self.stored[name] = ("update", 0)
        self.changed[name] = 0

    def _write(self, name: str, content: Hashable) -> None:
        self.clock += 1
        self.stored[name] = content
        self.changed[name] = self.clock

    def _begin(self) -> None:
        self.clock += 1
        self.maintained: set[str] = set()
        self.read: set[str] = set()

    def _end(self, event: Event | None, answer: Hashable = None) -> None:
        effective = {name: self.current_effective(group) for name, group in self.assignment.group_of.items()}
        read = frozenset(self.read) if isinstance(event, Queried) else frozenset()
        self.moments.append(Moment(event, dict(self.stored), effective, frozenset(self.maintained), read, answer))


def random_event(chance: random.Random, assignment: Assignment) -> Event:
    """An update of some tables, a query of anything, or the refresh of a group."""
    names = [table.name for table in assignment.graph.tables]
    groups = sorted({*assignment.group_of.values()} - {BASE})
    match chance.choice(["update", "update", "query", "query", "query", "refresh"]):
        case "update":
            return Update(tuple(chance.sample(names, chance.randint(1, len(names)))))
        case "refresh" if groups:
            return GroupRefresh(chance.choice(groups))
    return Queried(chance.choice(assignment.graph.order))


def random_history(model: Model, events: int, seed: int) -> History:
    chance = random.Random(seed)
    for _ in range(events):
        model.run(random_event(chance, model.assignment))
    return model.history
