"""`matview apply`: does what files of definitions say, as one version."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from matview.cli.opened import open_here
from matview.cli.proposed import File, read_definitions, tell_problems, write_as_json, write_proposal
from matview.cli.texts import announce, say
from matview.cli.where import HERE, Where


def apply(
    *files: File,
    json: Annotated[bool, Parameter(negative="", help="For programs.")] = False,
    where: Where = HERE,
) -> int:
    """1 if anything is wrong; then nothing was done."""
    definitions = read_definitions(files)
    if definitions is None:
        return 1
    with open_here(where) as warehouse:
        proposal = warehouse.plan(definitions.statements)
        version = None
        if proposal.is_legal and not proposal.is_idle:
            announce("applying …")
            applied = warehouse.apply(definitions.statements)
            proposal, version = applied.proposal, applied.version
    if json:
        write_as_json(proposal, version)
        return 0 if proposal.is_legal else 1
    if proposal.is_legal:
        write_proposal(proposal)
        say("everything is as it should be" if version is None else f"done, as version {version}")
        return 0
    tell_problems(proposal, definitions)
    say("nothing was done")
    return 1
