"""Names that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SUGGESTED = 3


def meant(name: str, known: Iterable[str]) -> str | None:
    """The closest of the known names, as a question; None if there is none."""
    folded = {one.casefold(): one for one in known}
    close = get_close_matches(name.casefold(), folded, n=SUGGESTED)
    return f"did you mean {' or '.join(folded[one] for one in close)}?" if close else None
