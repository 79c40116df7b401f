"""Tables of a source by the names that a user has given them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from matview.errors import SourceTableUnknown
from matview.sources.engine import Source, SourceTable

SHOWN = 10


def described_by_name(engine: Source, names: Sequence[str]) -> list[SourceTable]:
    """The tables; a name that is none is told together with those that there are, the most similar first."""
    try:
        return engine.describe(names)
    except SourceTableUnknown as error:
        raise SourceTableUnknown(error.what, help=suggestion(names, engine.tables())) from None


def suggestion(names: Sequence[str], there: Sequence[str]) -> str:
    """The tables, with those first that somebody may have meant by one of the names."""
    if not there:
        return "there are no tables in it that the role may read"
    folded = {name.casefold(): name for name in there}
    meant = [found for name in names for found in get_close_matches(name.casefold(), folded, n=3)]
    ordered = list(dict.fromkeys([*(folded[name] for name in meant), *there]))
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return f"there are {', '.join(ordered[:SHOWN])}{more}; a name with dots or blanks is written in double quotes"
