"""Statement by statement to what there would be, then the rules on all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matview.algebra.schema import RESERVED_PREFIX
from matview.errors import BadDefinition, MatviewError, UnsupportedStatement
from matview.groups.assign import Assignment, assigned
from matview.groups.check import refusal
from matview.groups.rules import violations
from matview.plan.propose import groups, tables, views
from matview.plan.propose.inventory import Inventory
from matview.plan.propose.order import ordered
from matview.plan.propose.proposal import Applied, Definition, Problem, Proposal, Said, Step
from matview.sql import statements as st


def propose(there: Inventory, statements: Sequence[st.Statement]) -> Proposal:
    """A statement that cannot be is a problem, and the others are looked at without it."""
    try:
        placed = ordered(statements)
    except MatviewError as error:
        return Proposal((), (Problem(error),), there, None)
    steps: list[Step] = []
    problems: list[Problem] = []
    after = there
    for place, statement in placed:
        try:
            after, done = _applied(after, _definition(statement), _said(steps))
            steps += done
        except MatviewError as error:
            problems.append(Problem(error, place))
    assignment, broken = _checked(after, there)
    return Proposal(tuple(steps), (*problems, *broken), after, assignment)


def _said(steps: Sequence[Step]) -> Said:
    """What earlier statements have said is to be there: a second CREATE would contradict the first, or repeat it."""
    last = {(step.kind, step.name.casefold()): step.action for step in steps}
    return frozenset(thing for thing, action in last.items() if action != "drop")


def _definition(statement: st.Statement) -> Definition:
    if not isinstance(statement, st.Definition | st.GroupDefinition):
        raise UnsupportedStatement(
            "only definitions can be planned and applied: CREATE, ALTER and DROP of tables, views and viewgroups",
            help="run changes, queries and refreshes with `matview sql`",
        )
    if statement.name.startswith(RESERVED_PREFIX):
        raise BadDefinition(f"{statement.name!r} begins with {RESERVED_PREFIX!r}, which is reserved")
    return statement


def _applied(there: Inventory, statement: Definition, before: Said) -> Applied:
    match statement:
        case st.CreateTable():
            return tables.create(there, statement, before)
        case st.DropTable():
            return tables.drop(there, statement)
        case st.CreateViewgroup() | st.AlterViewgroup() | st.RenameViewgroup() | st.DropViewgroup():
            return _of_group(there, statement, before)
        case _:
            return _of_view(there, statement, before)


def _of_view(
    there: Inventory,
    statement: st.CreateView | st.AlterView | st.SetView | st.RestateView | st.DropView,
    before: Said,
) -> Applied:
    match statement:
        case st.CreateView():
            return views.create(there, statement, before)
        case st.AlterView():
            return views.alter_view(there, statement)
        case st.SetView():
            return views.set_view(there, statement)
        case st.DropView():
            return views.drop(there, statement)
        case st.RestateView():
            raise AssertionError("no text says this")


def _of_group(
    there: Inventory,
    statement: st.CreateViewgroup | st.AlterViewgroup | st.RenameViewgroup | st.DropViewgroup,
    before: Said,
) -> Applied:
    match statement:
        case st.CreateViewgroup():
            return groups.create(there, statement, before)
        case st.AlterViewgroup():
            return groups.alter(there, statement)
        case st.RenameViewgroup():
            return groups.rename(there, statement)
        case st.DropViewgroup():
            return groups.drop(there, statement)


def _checked(after: Inventory, before: Inventory) -> tuple[Assignment | None, tuple[Problem, ...]]:
    try:
        assignment = assigned(after.graph())
    except MatviewError as error:
        return None, (Problem(error),)
    return assignment, tuple(_broken(assignment, before))


def _broken(assignment: Assignment, before: Inventory) -> Iterator[Problem]:
    """Every violation with its remedies; of several rules that one thing violates, the one that says most about it."""
    told: set[frozenset[str]] = set()
    for violation in violations(assignment):
        if frozenset(violation.views) not in told:
            told.add(frozenset(violation.views))
            yield Problem(refusal(assignment, violation, before.graph()))
