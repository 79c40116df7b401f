"""Algorithms with one mistake each, and the property that gives it away."""

from __future__ import annotations

from collections.abc import Hashable

from matview.groups.graph import BASE, Maintain, View
from matview.groups.history import Queried

from .model import Model


class ForgetsImmediateViews(Model):
    """makesafe updates the table and leaves it at that."""

    def makesafe(self, tables: tuple[str, ...]) -> None:
        for table in tables:
            self._write(table, ("update", self.clock))


class RefreshesInAnyOrder(Model):
    """A view is refreshed whether or not what it reads still waits."""

    def _in_order(self, waiting: set[str], policy: Maintain) -> None:
        for name in reversed(self.graph.order):
            if name in waiting and self._is_ready(name, (), policy):
                self.refresh(self.graph[name])  # type: ignore[arg-type]


class OnlyChildren(Model):
    """makesafe refreshes the views that read the table itself, and not those that read them."""

    def _in_order(self, waiting: set[str], policy: Maintain) -> None:
        near = {name for name in waiting if all(p not in waiting for p in self.graph[name].parents)}
        super()._in_order(near, policy)


class NeverLooks(Model):
    """A deferred view is taken to be up to date."""

    def needs_refresh(self, view: View) -> bool:
        return False


class LooksAtParentsOnly(Model):
    """The quick check looks at the parents, not at the leaves below deferred ones."""

    def needs_refresh(self, view: View) -> bool:
        return any(self.changed[parent] > self.refreshed[view.name] for parent in view.parents)


class DoesNotRecurse(Model):
    """A deferred view is refreshed from deferred parents as they are stored."""

    def refresh_deferred_view(self, view: View) -> None:
        self.refresh(view)


class LeavesOneOut(Model):
    """A group refresh forgets its last view."""

    def refresh_group(self, group: str) -> None:
        views = [name for name in self.assignment.members(group) if isinstance(self.graph[name], View)]
        self._in_order(set(views[:-1]), Maintain.SNAPSHOT)


class GoesOnBelow(Model):
    """A group refresh goes on to the groups that are derived from it."""

    def refresh_group(self, group: str) -> None:
        super().refresh_group(group)
        for other in self.assignment.groups:
            if other != BASE and group in self.assignment.derived_from(other):
                super().refresh_group(other)


class BeginsAbove(Model):
    """A group refresh brings the parent group up to date first."""

    def refresh_group(self, group: str) -> None:
        parent = self.assignment.parent(group)
        if parent != BASE:
            super().refresh_group(parent)
            self.effective[parent] = len(self.moments)
        super().refresh_group(group)


class RefreshesSnapshotsAtOnce(Model):
    """An update refreshes the snapshot views, too."""

    def makesafe(self, tables: tuple[str, ...]) -> None:
        super().makesafe(tables)
        for group in sorted(set(self.assignment.group_of.values()) - {BASE}):
            super().refresh_group(group)
            self.effective[group] = len(self.moments)


class ClaimsTooMuch(Model):
    """The effective state of a group is said to be that of its refresh, whatever its parent group shows."""

    def effective_at_refresh(self, group: str) -> int:
        return len(self.moments)


class GoesBack(Model):
    """Every other refresh puts back what was there at the beginning, and says so."""

    def refresh_group(self, group: str) -> None:
        if len(self.moments) % 2:
            super().refresh_group(group)
        else:
            self.stored |= {view.name: self.moments[0].stored[view.name] for view in self.snapshots(group)}

    def effective_at_refresh(self, group: str) -> int:
        return super().effective_at_refresh(group) if len(self.moments) % 2 else 0

    def snapshots(self, group: str) -> list[View]:
        members = [self.graph[name] for name in self.assignment.members(group)]
        return [node for node in members if isinstance(node, View) and node.maintain is Maintain.SNAPSHOT]


class LosesAnUpdate(Model):
    """A refresh writes something that the parents never said."""

    def makesafe_view(self, view: View, content: Hashable) -> None:
        super().makesafe_view(view, ("nonsense", self.clock) if self.clock % 5 == 0 else content)


class ComputesAnswers(Model):
    """A query of a view reads the base tables."""

    def query(self, name: str) -> None:
        self._begin()
        self.read |= {name, *(table.name for table in self.graph.tables)}
        node = self.graph[name]
        if isinstance(node, View) and node.maintain is Maintain.DEFERRED:
            self.refresh_deferred_view(node)
        self._end(Queried(name), self.stored[name])


class AnswersAnything(Model):
    """A query is told what was there at the beginning."""

    def _end(self, event: object, answer: Hashable = None) -> None:
        told = self.moments[0].stored[event.name] if isinstance(event, Queried) else None
        super()._end(event, told)  # type: ignore[arg-type]


WRONG: dict[type[Model], set[str]] = {
    ForgetsImmediateViews: {"P1", "P4", "P9"},
    RefreshesInAnyOrder: {"P1", "P4", "P9"},
    OnlyChildren: {"P1", "P4", "P9"},
    NeverLooks: {"P2"},
    LooksAtParentsOnly: {"P2"},
    DoesNotRecurse: {"P2", "P5"},
    LeavesOneOut: {"P4", "P9"},
    GoesOnBelow: {"P4", "P8", "P9"},
    BeginsAbove: {"P8"},
    RefreshesSnapshotsAtOnce: {"P8"},
    ClaimsTooMuch: {"P4", "P9"},
    GoesBack: {"P5"},
    LosesAnUpdate: {"P1", "P2", "P3", "P4", "P5", "P9"},
    ComputesAnswers: {"P7"},
    AnswersAnything: {"P1", "P2", "P3"},
}
