"""Strings by name: the warehouse's id, when it was created, what holds for all its users, what other packages keep."""

from __future__ import annotations

from sqlalchemy import select

from matview.catalog import schema
from matview.catalog.store import Store, Writing
from matview.errors import CatalogCorrupt

WAREHOUSE_ID = "warehouse_id"
CREATED_AT = "created_at"
MARKED = "marked"
FILE_RETENTION = "file_retention"


class StoredSettings:
    """Get and set; the last one to set wins."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str) -> str | None:
        query = select(schema.setting.c.value).where(schema.setting.c.name == name)
        value: str | None = self._store.read(lambda reading: reading.value(query))
        return value

    def set(self, name: str, value: str) -> None:
        self._store.write(lambda writing: writing.put(schema.setting, [{"name": name, "value": value}]))

    def raise_to(self, name: str, least: float) -> None:
        """A number that is at least so great from now on; it never goes down."""
        self._store.exclusive(lambda writing: _raise_to(writing, name, least))

    def number(self, name: str, otherwise: float) -> float:
        """What is kept as a number; `otherwise` where nothing is."""
        stored = self.get(name)
        return otherwise if stored is None else _number(name, stored)


def _raise_to(writing: Writing, name: str, least: float) -> None:
    stored = writing.value(select(schema.setting.c.value).where(schema.setting.c.name == name))
    if stored is None or _number(name, stored) < least:
        writing.put(schema.setting, [{"name": name, "value": repr(least)}])


def _number(name: str, stored: str) -> float:
    try:
        return float(stored)
    except ValueError as error:
        raise CatalogCorrupt(f"the catalog's setting {name} is {stored!r}, which is no number") from error
