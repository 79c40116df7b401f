"""The design rules of section 2.3, one function each, held against a whole assignment.

Rules 1 to 6 are what properties P1 to P9 need; 7 to 9 forbid what could be said more simply. From them follows that all
immediate views are in the base group, and that the groups form a tree with the base group as its root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from matview.groups.assign import Assignment
from matview.groups.graph import BASE, Maintain, View


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold: the nodes concerned, the one to blame first, and why."""

    rule: int
    views: tuple[str, ...]
    why: str


Rule = Callable[[Assignment], Iterator[Violation]]


def rule_1(assignment: Assignment) -> Iterator[Violation]:
    """A view belongs to one viewgroup, not to several."""
    for view in assignment.graph.views:
        groups = assignment.named(view)
        if len(groups) > 1:
            yield Violation(1, (view.name,), f"view {view.name} is declared for several viewgroups: {_list(groups)}")


def rule_2(assignment: Assignment) -> Iterator[Violation]:
    """An immediate or a deferred view is in the same viewgroup as all of its parents."""
    for view in assignment.graph.views:
        if view.maintain is not Maintain.SNAPSHOT:
            yield from _outside_its_parents_group(assignment, view)


def _outside_its_parents_group(assignment: Assignment, view: View) -> Iterator[Violation]:
    own = assignment.group_of[view.name]
    elsewhere = [p for p in view.parents if assignment.group_of[p] != own]
    if elsewhere:
        places = _list(f"{p} ({assignment.group_of[p]})" for p in elsewhere)
        why = f"{view.maintain} view {view.name} is in viewgroup {own}, and reads what is in another: {places}"
        yield Violation(2, (view.name, *elsewhere), why)


def rule_3(assignment: Assignment) -> Iterator[Violation]:
    """All snapshot views of a viewgroup have the same refresh cycle: that of the group."""
    for view in assignment.graph.views:
        group = assignment.groups[assignment.group_of[view.name]]
        if view.maintain is Maintain.SNAPSHOT and view.cycle not in (None, group.schedule):
            why = f"view {view.name} is to be refreshed {view.cycle}, its viewgroup {group.name} {group.schedule}"
            yield Violation(3, (view.name,), why)


def rule_4(assignment: Assignment) -> Iterator[Violation]:
    """A viewgroup that has base tables has no snapshot views."""
    with_tables = {BASE, *(assignment.group_of[table.name] for table in assignment.graph.tables)}
    for view in assignment.graph.views:
        group = assignment.group_of[view.name]
        if view.maintain is Maintain.SNAPSHOT and group in with_tables:
            yield Violation(4, (view.name,), f"snapshot view {view.name} is in viewgroup {group}, as base tables are")


def rule_5(assignment: Assignment) -> Iterator[Violation]:
    """A viewgroup is derived from at most one other viewgroup; so they form a tree."""
    for group in assignment.groups:
        sources = assignment.derived_from(group)
        if len(sources) > 1:
            edges = _into(assignment, group)
            views = dict.fromkeys([child for child, _ in edges] + [parent for _, parent in edges])
            reads = _list(f"{child} reads {parent} ({assignment.group_of[parent]})" for child, parent in edges)
            yield Violation(5, tuple(views), f"viewgroup {group} is derived from {_list(sources)}: {reads}")


def _into(assignment: Assignment, group: str) -> list[tuple[str, str]]:
    """The views of a group that read what is in another, each with what it reads there."""
    members = [assignment.graph[name] for name in assignment.members(group)]
    return [(node.name, p) for node in members for p in node.parents if assignment.group_of[p] != group]


def rule_6(assignment: Assignment) -> Iterator[Violation]:
    """A deferred view has no children in other viewgroups. (Rules 2, 7 and 8 together say so, too.)"""
    for view in assignment.views_of(Maintain.DEFERRED):
        own = assignment.group_of[view.name]
        elsewhere = [c for c in assignment.graph.children(view.name) if assignment.group_of[c] != own]
        if elsewhere:
            places = _list(f"{child} ({assignment.group_of[child]})" for child in elsewhere)
            why = f"deferred view {view.name}, in viewgroup {own}, is read from other viewgroups: {places}"
            yield Violation(6, (view.name, *elsewhere), why)


def rule_7(assignment: Assignment) -> Iterator[Violation]:
    """An immediate view reads neither a deferred nor a snapshot view: it could be no fresher than they are."""
    for view in assignment.views_of(Maintain.IMMEDIATE):
        late = _parents(assignment, view, Maintain.DEFERRED, Maintain.SNAPSHOT)
        if late:
            kinds = _list(f"{parent.maintain} view {parent.name}" for parent in late)
            why = f"immediate view {view.name} reads {kinds}"
            yield Violation(7, (view.name, *(parent.name for parent in late)), why)


def rule_8(assignment: Assignment) -> Iterator[Violation]:
    """A snapshot view reads no deferred view."""
    for view in assignment.views_of(Maintain.SNAPSHOT):
        late = [parent.name for parent in _parents(assignment, view, Maintain.DEFERRED)]
        if late:
            yield Violation(8, (view.name, *late), f"snapshot view {view.name} reads deferred view {_list(late)}")


def rule_9(assignment: Assignment) -> Iterator[Violation]:
    """All base tables are in one viewgroup, the built-in one."""
    for table in assignment.graph.tables:
        groups = [group for group in assignment.named(table) if group != BASE]
        if groups:
            yield Violation(9, (table.name,), f"base table {table.name} is declared for viewgroup {_list(groups)}")


RULES: dict[int, Rule] = {
    1: rule_1,
    2: rule_2,
    3: rule_3,
    4: rule_4,
    5: rule_5,
    6: rule_6,
    7: rule_7,
    8: rule_8,
    9: rule_9,
}
TELLING = (1, 9, 4, 7, 8, 6, 2, 5, 3)
"""Where one mistake violates several rules, the rule that says most about it comes first."""


def violations(assignment: Assignment, rules: Iterable[int] = TELLING) -> tuple[Violation, ...]:
    """Every violation of these rules, rule by rule."""
    return tuple(found for rule in rules for found in RULES[rule](assignment))


def _parents(assignment: Assignment, view: View, *policies: Maintain) -> list[View]:
    parents = (assignment.graph[name] for name in view.parents)
    return [parent for parent in parents if isinstance(parent, View) and parent.maintain in policies]


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
