"""A set of definitions, checked as a whole, then done as one version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matview.catalog.catalog import Catalog
from matview.catalog.inventory import inventory_of, planned
from matview.errors import CyclicViews
from matview.maintain.transaction import MaintenanceTransaction
from matview.plan.propose.proposal import Proposal
from matview.plan.propose.propose import propose
from matview.sql import statements as st


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done, and the version that shows it; None if everything was as it should be."""

    proposal: Proposal
    version: int | None

    def __str__(self) -> str:
        done = [str(step) for step in self.proposal.steps if step.action != "unchanged"]
        return "\n".join([*done, f"version {self.version}"] if done else ["everything is as it should be"])


def apply(catalog: Catalog, begin: Callable[[], MaintenanceTransaction], statements: Sequence[st.Statement]) -> Applied:
    """All of it as one transaction; with nothing to do, none is begun. Raises what is wrong first."""
    proposal = planned(catalog, statements)
    proposal.require_legal()
    if proposal.is_idle:
        return Applied(proposal, None)
    with begin() as tx:
        proposal = planned(catalog, statements)  # again, now that nobody else can change anything
        proposal.require_legal()
        for statement in proposal.statements:
            tx.run(statement)
        return Applied(proposal, tx.commit().version)


def refuse_if_illegal(catalog: Catalog, statement: st.Statement) -> None:
    """A view that would be illegal is refused before it is filled; whatever else is wrong, running it will tell."""
    if not isinstance(statement, st.CreateView | st.AlterView | st.SetView):
        return
    there = inventory_of(catalog)
    if isinstance(statement, st.CreateView) and there.relation(statement.name) is not None:
        return
    for problem in propose(there, [statement]).problems:
        if problem.statement is None or isinstance(problem.error, CyclicViews):
            raise problem.error
