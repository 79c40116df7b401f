"""The whole graph, legal or refused: each rule with an error of its own that says what would be legal instead."""

from __future__ import annotations

from matview import errors
from matview.groups.assign import Assignment, assigned
from matview.groups.graph import Graph
from matview.groups.remedies import Remedy, remedies
from matview.groups.rules import Violation, violations

ERRORS: dict[int, type[errors.MatviewError]] = {
    1: errors.SeveralViewgroups,
    2: errors.OutsideParentsGroup,
    3: errors.DifferentCycles,
    4: errors.SnapshotAmongTables,
    5: errors.SeveralParentGroups,
    6: errors.DeferredReadElsewhere,
    7: errors.ImmediateOverLate,
    8: errors.SnapshotOverDeferred,
    9: errors.TableInViewgroup,
}
SHOWN = 6


def checked(graph: Graph, before: Graph | None = None) -> Assignment:
    """The assignment of a legal graph; the error of the rule that says most about what is wrong, otherwise."""
    assignment = assigned(graph)
    found = violations(assignment)
    if found:
        raise refusal(assignment, found[0], before)
    return assignment


def refusal(assignment: Assignment, violation: Violation, before: Graph | None = None) -> errors.MatviewError:
    """The error for a violation; its help lists the remedies, for someone who has the graph of before."""
    kind, known = ERRORS[violation.rule], assignment.graph if before is None else before
    new = frozenset(view.name for view in assignment.graph.views if view.name not in known)
    return kind(f"{violation.why} (Rule {violation.rule})", help=_help(remedies(assignment, violation, new)))


def _help(found: tuple[Remedy, ...]) -> str | None:
    """None where nothing was found: the error then says what is usual."""
    if not found:
        return None
    opening = "any of these is legal:" if found[0].is_enough else "any of these puts this right, and more is wrong:"
    more = [f"or {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "\n    ".join([opening, *map(str, found[:SHOWN]), *more])
