"""A statement inside a maintenance transaction is done whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import fields

from matview.maintain.context import Notes
from matview.maintain.tables import WorkingTables


@contextmanager
def whole(tables: WorkingTables, notes: Notes) -> Iterator[None]:
    """What fails leaves tables and notes as they were: the transaction can go on, and commits nothing of it.

    A refresh that fails at its second view would otherwise have moved the first, but not its edge, and the next one
    would take the same changes over again; an ALTER whose query is refused would have dropped the view.
    """
    noted = {field.name: copy(getattr(notes, field.name)) for field in fields(notes)}
    restore = tables.saved()
    try:
        yield
    except BaseException:
        for name, value in noted.items():
            setattr(notes, name, value)
        restore()
        raise
