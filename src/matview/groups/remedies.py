"""What would be legal instead: the smallest changes of the views concerned after which every rule holds.

They are searched for, not listed by rule: each edit of a view concerned is tried on the whole graph; where no single
one will do, all that they are derived from in one viewgroup, then pairs of edits. Edits that leave snapshot views
snapshot views come first, as in Example 2.2: who asks for one needs data that stand still, which no other policy gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice

from matview.errors import MatviewError
from matview.groups.assign import Assignment, assigned
from matview.groups.edits import Edit, Redefine, SetCycle, SetGroup, SetMaintain, past, sentence, statements
from matview.groups.graph import BASE, BaseTable, Graph, Maintain, View
from matview.groups.rules import Violation, violations

MOST_PAIRS = 500
"""How many pairs are tried: in a large graph, an error should not take longer than what it refuses."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Edits that belong together, what they do in words, and the SQL statements that make them.

    `is_enough`: everything is legal afterwards; otherwise another violation is left.
    """

    edits: tuple[Edit, ...]
    sentence: str
    sql: tuple[str, ...]
    is_enough: bool = True

    def __str__(self) -> str:
        together = "in one transaction, " if len(self.sql) > 1 else ""
        return f"{self.sentence}: {together}{'; '.join(self.sql)}"


def remedies(assignment: Assignment, violation: Violation, new: frozenset[str] = frozenset()) -> tuple[Remedy, ...]:
    """The smallest changes that make everything legal; failing that, those that cure this violation and do no harm.

    Views that are `new` are refused with it: nothing can be altered about them.
    """
    graph = assignment.graph
    around = [assignment.group_of[name] for name in violation.views]
    every = tuple(edit for name in violation.views for edit in _edits(assignment, name))
    gentle = tuple(edit for edit in every if not _wakes_a_snapshot(graph, edit))
    near, all_near = (tuple(e for e in edits if _stays_near(assignment, e, around)) for edits in (gentle, every))
    harmless = frozenset(_key(found) for found in violations(assignment)) - {_key(violation)}
    left = cache(lambda edits: _left(graph, edits))
    gathered = _gathered(assignment, violation)
    for allowed in (frozenset[Key](), harmless):
        for tier in (_singles(near), _singles(gentle), _singles(every), gathered, _pairs(near), _pairs(all_near)):
            found = [edits for edits in tier if left(edits) <= allowed]
            if found:
                return _told(graph, _minimal(found), new, is_enough=not allowed)
    return ()


# the edits ------------------------------------------------------------------------------------------------------------


def _edits(assignment: Assignment, name: str) -> Iterator[Edit]:
    """Every edit of one node, the likeliest first."""
    node = assignment.graph[name]
    if isinstance(node, BaseTable):
        if node.declared:
            yield SetGroup(name, BASE)
        return
    yield from _other_policies(assignment, node)
    if node.cycle is not None:
        yield SetCycle(name, assignment.groups[assignment.group_of[name]].schedule)
    yield from (SetGroup(name, group) for group in _places(assignment, node) if (group,) != node.declared)
    passable = tuple(parent for parent in node.parents if assignment.graph[parent].parents)
    for parents in dict.fromkeys([*((parent,) for parent in passable), passable]):
        if parents:
            yield past(assignment.graph, node, parents)


def _other_policies(assignment: Assignment, view: View) -> Iterator[Edit]:
    for maintain in Maintain:
        if maintain is view.maintain:
            continue
        if maintain is Maintain.SNAPSHOT:
            yield from (SetMaintain(view.name, maintain, group) for group in _places(assignment, view) if group != BASE)
        else:
            yield SetMaintain(view.name, maintain)


def _places(assignment: Assignment, view: View) -> list[str]:
    """The groups that a view could be in, those near it first."""
    return list(dict.fromkeys([*_near(assignment, view), *sorted(assignment.groups)]))


def _near(assignment: Assignment, view: View) -> list[str]:
    """The groups of a view's children, its own, those of its parents, those declared for it, and the base group."""
    below = [assignment.group_of[name] for name in assignment.graph.children(view.name)]
    above = [assignment.group_of[name] for name in view.parents]
    return [*(group for group in below if group != BASE), view.name, *above, *assignment.named(view), BASE]


def _stays_near(assignment: Assignment, edit: Edit, around: list[str]) -> bool:
    """It names no group that the violation and the view have nothing to do with."""
    node = assignment.graph[edit.view]
    if isinstance(edit, SetMaintain | SetGroup) and isinstance(node, View) and edit.group is not None:
        return edit.group in around or edit.group in _near(assignment, node)
    return True


def _wakes_a_snapshot(graph: Graph, edit: Edit) -> bool:
    node = graph[edit.view]
    return isinstance(edit, SetMaintain) and isinstance(node, View) and node.maintain is Maintain.SNAPSHOT


def _gathered(assignment: Assignment, violation: Violation) -> list[tuple[Edit, ...]]:
    """The snapshot views of the groups concerned, and those that they are derived from, in the group of the first."""
    graph, groups = assignment.graph, {assignment.group_of[name] for name in violation.views}
    concerned = {name for group in groups if group != BASE for name in assignment.members(group)}
    concerned |= {above for name in concerned for above in graph.ancestors(name)}
    views = [v.name for v in assignment.views_of(Maintain.SNAPSHOT) if v.name in concerned]
    first = next((assignment.group_of[name] for name in views), BASE)
    moved = tuple(SetGroup(name, first) for name in views if assignment.group_of[name] != first)
    return [moved] if first != BASE and len(moved) > 1 else []


# the search -----------------------------------------------------------------------------------------------------------


def _singles(edits: Iterable[Edit]) -> Iterator[tuple[Edit, ...]]:
    return ((edit,) for edit in edits)


def _pairs(edits: Iterable[Edit]) -> Iterator[tuple[Edit, ...]]:
    return islice((pair for pair in combinations(edits, 2) if _go_together(*pair)), MOST_PAIRS)


def _go_together(first: Edit, second: Edit) -> bool:
    """Not two edits of which the second would undo the first."""
    if first.view != second.view:
        return True
    kinds = {type(first), type(second)}
    return len(kinds) == 2 and kinds != {SetMaintain, SetGroup} and Redefine not in kinds


Key = tuple[int, tuple[str, ...]]
IMPOSSIBLE: frozenset[Key] = frozenset({(0, ())})


def _left(graph: Graph, edits: tuple[Edit, ...]) -> frozenset[Key]:
    """What is still violated after the edits."""
    try:
        for edit in edits:
            graph = edit.applied(graph)
        return frozenset(_key(found) for found in violations(assigned(graph)))
    except MatviewError:
        return IMPOSSIBLE


def _key(violation: Violation) -> Key:
    return violation.rule, tuple(sorted(violation.views))


def _minimal(found: list[tuple[Edit, ...]]) -> list[tuple[Edit, ...]]:
    """A view that becomes a snapshot view is proposed once, for the first group that will do; none goes past more
    parents than it must.
    """
    chosen: dict[object, tuple[Edit, ...]] = {}
    for edits in found:
        chosen.setdefault(tuple(_kind(edit) for edit in edits), edits)
    return [edits for edits in chosen.values() if not any(_goes_further(edits, other) for other in chosen.values())]


def _goes_further(edits: tuple[Edit, ...], other: tuple[Edit, ...]) -> bool:
    match edits, other:
        case (Redefine(view, without),), (Redefine(same, less),):
            return view == same and set(less) < set(without)
    return False


def _kind(edit: Edit) -> object:
    return (edit.view, edit.maintain) if isinstance(edit, SetMaintain) else edit


def _told(graph: Graph, found: list[tuple[Edit, ...]], new: frozenset[str], is_enough: bool) -> tuple[Remedy, ...]:
    tables = frozenset(table.name for table in graph.tables)
    ranked = sorted(found, key=lambda edits: [_RANK[type(edit)] for edit in edits])
    texts = [sentence(edits) for edits in ranked]
    return tuple(Remedy(e, t, statements(e, tables, new), is_enough) for e, t in zip(ranked, texts, strict=True))


_RANK: dict[type[Edit], int] = {SetMaintain: 0, SetCycle: 1, SetGroup: 2, Redefine: 3}
