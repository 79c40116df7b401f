"""The order in which statements take effect: as they stand, but of CREATEs in a row each comes after what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby

from matview.errors import CyclicViews
from matview.sql import statements as st
from matview.versions.references import table_references

Placed = tuple[int, st.Statement]
"""A statement, and which of the proposed ones it is."""


def ordered(statements: Sequence[st.Statement]) -> tuple[Placed, ...]:
    """Files of definitions may be given in any order. Views that read one another in a circle are an error."""
    found: list[Placed] = []
    runs = groupby(enumerate(statements), lambda placed: isinstance(placed[1], _CREATE))
    for is_create, run in runs:
        found += _parents_first(list(run)) if is_create else run
    return tuple(found)


_CREATE = st.CreateViewgroup | st.CreateTable | st.CreateView


def _parents_first(run: list[Placed]) -> list[Placed]:
    """Viewgroups and tables, then views, level by level."""
    views = {place: one for place, one in run if isinstance(one, st.CreateView)}
    places = {view.name.casefold(): place for place, view in views.items()}
    reads = {place: [places[name] for name in _read(view) if name in places] for place, view in views.items()}
    try:
        order = [*TopologicalSorter(reads).static_order()]
    except CycleError as error:
        circle = [views[place].name for place in reversed(error.args[1])]
        raise CyclicViews(f"views cannot read themselves: {' reads '.join(circle)}") from None
    return [placed for placed in run if placed[0] not in views] + [(place, views[place]) for place in order]


def _read(view: st.CreateView) -> list[str]:
    return [reference.name.casefold() for reference in table_references(view.query) if not reference.db]
