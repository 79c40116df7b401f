"""What a set of definitions would do, and what is wrong with it: plain data that `plan` shows and `apply` runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from matview.errors import MatviewError
from matview.groups.assign import Assignment
from matview.plan.propose.inventory import Inventory
from matview.sql import statements as st

Action = Literal["create", "change", "drop", "unchanged"]
Kind = Literal["table", "view", "viewgroup"]
Definition = st.Definition | st.GroupDefinition


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one thing, why, and the statements that do it: none if another step's do, or none are needed."""

    action: Action
    kind: Kind
    name: str
    why: tuple[str, ...] = ()
    statements: tuple[Definition, ...] = ()

    def __str__(self) -> str:
        reasons = f": {'; '.join(self.why)}" if self.why else ""
        return f"{self.action} {self.kind} {self.name}{reasons}"


Applied = tuple[Inventory, tuple[Step, ...]]
"""What there would be after a statement, and what the statement does."""


Said = frozenset[tuple[Kind, str]]
"""What the proposal has spoken of before, by kind and folded name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and which of the statements it is about; None: all of them together."""

    error: MatviewError
    statement: int | None = None


@dataclass(frozen=True)
class Proposal:
    """What would be done, what is wrong with it, and what there would be then, in which viewgroups if that is clear."""

    steps: tuple[Step, ...]
    problems: tuple[Problem, ...]
    after: Inventory
    assignment: Assignment | None

    @property
    def is_legal(self) -> bool:
        return not self.problems

    @property
    def is_idle(self) -> bool:
        """Everything is as it should be."""
        return not self.statements

    @property
    def statements(self) -> tuple[Definition, ...]:
        """What has to be run, in order."""
        return tuple(statement for step in self.steps for statement in step.statements)

    def require_legal(self) -> None:
        """Raises what is wrong first."""
        if self.problems:
            raise self.problems[0].error
