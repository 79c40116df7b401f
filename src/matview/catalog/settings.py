"""Strings by name: the warehouse's id, when it was created, and what other packages keep."""

from __future__ import annotations

from sqlalchemy import select

from matview.catalog import schema
from matview.catalog.store import Store

WAREHOUSE_ID = "warehouse_id"
CREATED_AT = "created_at"


class Settings:
    """Get and set; the last one to set wins."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str) -> str | None:
        query = select(schema.setting.c.value).where(schema.setting.c.name == name)
        value: str | None = self._store.read(lambda reading: reading.value(query))
        return value

    def set(self, name: str, value: str) -> None:
        self._store.write(lambda writing: writing.put(schema.setting, [{"name": name, "value": value}]))
