"""Which tables have drifted away from what was added, or were changed behind capture? Asked when a capture has failed:
it refuses both, in the snapshot that it reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from matview.catalog.described import all_described
from matview.catalog.source_records import SourceRecord
from matview.errors import MatviewError
from matview.groups.edits import quoted
from matview.maintain.rounds.place import Place
from matview.sources.engine import Problem
from matview.sources.problems import together


def look(place: Place, source: SourceRecord) -> list[Problem]:
    """What stands against taking anything over from tables that are not stopped."""
    return place.connections.of(source).check(all_described(source.going), installed=True)


def stop(place: Place, source: SourceRecord, problems: Sequence[Problem]) -> set[str]:
    """The tables that problems speak of are stopped, and with them their views. Which they are.

    A problem that is of no table in particular is that of the whole source, and is raised.
    """
    for problem in problems:
        if problem.table is None:
            raise type(problem.error)(f"source {source.name}: {problem.what}", help=problem.help)
    for table in source.going:
        own = [problem for problem in problems if problem.table == table.name]
        if own:
            error = together(own)
            stop_table(place, source.id, table.name, type(error)(error.what, help=_help(source)))
    return {problem.table for problem in problems if problem.table is not None}


def stop_table(place: Place, source_id: str, table: str, error: MatviewError) -> None:
    place.runtime.catalog.sources.stop(source_id, table, str(error))


def _help(source: SourceRecord) -> str:
    return f"`matview source check {quoted(source.name)}` says what to do"
