"""`matview plan`: what files of definitions would do, and whether that would be legal."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from matview.catalog.inventory import planned
from matview.cli.proposed import File, read_definitions, tell_problems, write_as_json, write_proposal
from matview.cli.texts import say
from matview.cli.where import HERE, Where


def plan(
    *files: File,
    json: Annotated[bool, Parameter(negative="", help="For programs.")] = False,
    where: Where = HERE,
) -> int:
    """1 if anything is wrong."""
    definitions = read_definitions(files)
    if definitions is None:
        return 1
    with where.open_catalog() as catalog:
        proposal = planned(catalog, definitions.statements)
    if json:
        write_as_json(proposal)
        return 0 if proposal.is_legal else 1
    write_proposal(proposal)
    tell_problems(proposal, definitions)
    if proposal.is_legal:
        say("everything is as it should be" if proposal.is_idle else "legal; `matview apply` does it")
    return 0 if proposal.is_legal else 1
