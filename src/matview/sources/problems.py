"""What is said of tables that are no longer what they were, in the words of all engines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from matview.errors import CannotCapture, CaptureBypassed, MatviewError, SourceDrifted
from matview.sources.engine import Problem, SourceTable

AGAIN = "remove the source and add it again, so that the table is read anew"
REREAD = "`matview source reload NAME` reads the table whole again"


def not_captured(table: SourceTable) -> MatviewError:
    return CaptureBypassed(f"{table.name} is not captured at the source, or no longer", help=REREAD)


def not_one_at_a_time(what: str) -> MatviewError:
    """Of a source whose triggers know no transaction."""
    return CannotCapture(
        f"{what} does not tell one transaction from the next: they cannot be taken one at a time",
        help="take this source with the consistency STRONG",
    )


def own_names(table: SourceTable, own: Collection[str]) -> list[MatviewError]:
    """A column that is called as one of Matview's own beside it."""
    taken = {column.name.lower() for column in table.columns} & set(own)
    what = f"{table.name} has a column {min(taken, default='')}, a name of Matview's own"
    return [CannotCapture(what, help="rename it")] if taken else []


def columns_drift(before: SourceTable, now: SourceTable) -> list[MatviewError]:
    differences = changed_columns(before, now)
    return [SourceDrifted(f"{before.name} has changed: {'; '.join(differences)}", help=AGAIN)] if differences else []


def together(problems: Sequence[Problem]) -> MatviewError:
    """Several problems as one error: that of changes that were missed, if it is among them."""
    worst = CaptureBypassed if any(isinstance(one.error, CaptureBypassed) for one in problems) else SourceDrifted
    return worst("; ".join(one.what for one in problems), help=problems[0].help)


def changed_columns(before: SourceTable, now: SourceTable) -> list[str]:
    """What was added, dropped or retyped, in words."""
    old = {column.name: column for column in before.columns}
    new = {column.name: column for column in now.columns}
    return [
        *(f"column {name!r} is gone" for name in old if name not in new),
        *(f"column {name!r} is new" for name in new if name not in old),
        *(
            f"column {name!r} was {old[name].source_type}, and is {column.source_type}"
            for name, column in new.items()
            if name in old and column.source_type != old[name].source_type
        ),
    ]
