"""A value that a view's query cannot take: whose query it was, and what lets the tables go on without the view."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from matview.errors import BadValue
from matview.groups.edits import quoted
from matview.groups.graph import Maintain


@contextmanager
def blamed(view: str, maintain: Maintain) -> Iterator[None]:
    """An immediate view has to follow in the transaction that changes its tables, so it can keep them back."""
    try:
        yield
    except BadValue as error:
        error.what = f"view {view}: {error.what}"
        if maintain is Maintain.IMMEDIATE:
            mend = f"`ALTER MATERIALIZED VIEW {quoted(view)} SET MAINTAIN DEFERRED` lets its tables go on without it"
            error.help = f"{error.help}; {mend}"
        raise
