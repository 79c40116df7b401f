"""`matview gc`: collects garbage."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from matview.cli.opened import open_here
from matview.cli.texts import say, write_json
from matview.cli.where import HERE, Where


def gc(*, json: Annotated[bool, Parameter(negative="", help="For programs.")] = False, where: Where = HERE) -> None:
    with open_here(where) as warehouse:
        collected = warehouse.gc()
    if json:
        write_json(collected)
    else:
        say(f"removed {collected.tuples} deleted rows, {collected.files} files and {collected.tables} dropped tables")
        say(f"versions before {collected.horizon} can no longer be read")
