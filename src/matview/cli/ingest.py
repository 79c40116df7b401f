"""`matview ingest`: one round over sources."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from matview.cli.opened import open_here
from matview.cli.report import report_error
from matview.cli.texts import say, write_json
from matview.cli.where import HERE, Where


def ingest(
    *sources: Annotated[str, Parameter(name="SOURCE", help="All there are, if none is named.")],
    json: Annotated[bool, Parameter(negative="", help="For programs.")] = False,
    where: Where = HERE,
) -> int:
    """1 if a source failed; the others were taken over all the same."""
    with open_here(where) as warehouse:
        done = warehouse.ingest(*sources)
    if json:
        write_json(asdict(done) | {"failed": {name: str(error) for name, error in done.failed.items()}})
    else:
        say(str(done))
    for error in done.failed.values():
        report_error(error)
    return int(bool(done.failed))
