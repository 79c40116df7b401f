"""Files of definitions, and what a proposal looks like: what `matview plan` and `matview apply` have in common."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from matview.cli.pieces import Piece, pieces
from matview.cli.report import UsageError, report_error
from matview.cli.rows import write_table
from matview.cli.texts import say, write_json
from matview.errors import MatviewError
from matview.groups.assign import Assignment
from matview.groups.graph import BASE
from matview.plan.propose.proposal import Proposal, Step
from matview.sql.parse import parse_one
from matview.sql.statements import Statement

STDIN = "-"
STEPS = ("action", "kind", "name", "because")
File = Annotated[str, Parameter(name="FILE", allow_leading_hyphen=True, help="Files of definitions; `-` is stdin.")]
GROUPS = ("viewgroup", "refresh", "derived from", "tables", "views")


@dataclass(frozen=True, slots=True)
class Definitions:
    """The statements of some files, each with the piece of text that it is."""

    statements: tuple[Statement, ...]
    pieces: tuple[Piece, ...]


def read_definitions(files: Sequence[str]) -> Definitions | None:
    """None when a text cannot be read, which is told."""
    if not files:
        raise UsageError("which files?", help="name files with CREATE, ALTER and DROP statements, or `-` for stdin")
    statements: list[Statement] = []
    found: list[Piece] = []
    for file in files:
        text, source = _text(file)
        piece = Piece(text, 1, 1, text, source, is_one_of_several=False)
        try:
            for piece in pieces(text, source):
                statements.append(parse_one(piece.padded, piece.source))
                found.append(piece)
        except MatviewError as error:
            report_error(error, piece)
            return None
    return Definitions(tuple(statements), tuple(found))


def _text(file: str) -> tuple[str, str]:
    if file == STDIN:
        return sys.stdin.read(), "<stdin>"
    try:
        return Path(file).read_text(encoding="utf-8"), file
    except FileNotFoundError:
        raise UsageError(f"there is no file {file}") from None


def tell_problems(proposal: Proposal, definitions: Definitions) -> None:
    for problem in proposal.problems:
        piece = None if problem.statement is None else definitions.pieces[problem.statement]
        report_error(problem.error, piece)


def write_proposal(proposal: Proposal) -> None:
    """What is done, and the viewgroups that come of it."""
    done = [step for step in proposal.steps if step.action != "unchanged"]
    if done:
        write_table(STEPS, [(step.action, step.kind, step.name, "; ".join(step.why)) for step in done])
    if same := len(proposal.steps) - len(done):
        say(f"unchanged: {same} definition{'s' if same > 1 else ''}")
    if proposal.assignment is not None:
        write_table(GROUPS, _groups(proposal.assignment))


def _groups(assignment: Assignment) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in sorted(assignment.groups, key=lambda group: (group != BASE, group.casefold())):
        members = set(assignment.members(name))
        views = [f"{view.name} ({view.maintain})" for view in assignment.graph.views if view.name in members]
        tables = [table.name for table in assignment.graph.tables if table.name in members]
        refresh = "" if name == BASE else str(assignment.groups[name].schedule)
        above = ", ".join(assignment.derived_from(name)) if views else ""
        rows.append((name, refresh, above, ", ".join(tables), ", ".join(views)))
    return rows


def write_as_json(proposal: Proposal, version: int | None = None) -> None:
    groups = {} if proposal.assignment is None else proposal.assignment.partition()
    write_json(
        {
            "legal": proposal.is_legal,
            "steps": [_step(step) for step in proposal.steps],
            "problems": [{"code": p.error.code, "what": p.error.what, "help": p.error.help} for p in proposal.problems],
            "viewgroups": {group: sorted(names) for group, names in groups.items()},
            "version": version,
        }
    )


def _step(step: Step) -> dict[str, object]:
    return {"action": step.action, "kind": step.kind, "name": step.name, "because": list(step.why)}
