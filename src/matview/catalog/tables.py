"""The tables of the warehouse, each to be seen at versions created_vn <= v < dropped_vn.

Case does not tell names apart. An id is reserved before the table is made, so that a journal can name it, and is never
given again.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, and_, delete, insert, or_, select, true, update

from matview.catalog import codec, schema
from matview.catalog.lease import fenced
from matview.catalog.records import Lease, NewTable, TableRecord
from matview.catalog.store import Reading, Store, Writing
from matview.catalog.version import set_version, version_row
from matview.errors import BadDefinition, TableExists, UnknownTable


class Tables:
    """Look tables up; reserve an id for a new one; forget one whose files are gone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, name: str, at_version: int) -> TableRecord | None:
        """The table of that name at that version."""
        named = and_(schema.table.c.name_folded == name.casefold(), _seen_at(at_version))
        return next(iter(self._store.read(lambda reading: _where(reading, named))), None)

    def live(self, at_version: int) -> list[TableRecord]:
        """All tables at that version, by name."""
        return self._store.read(lambda reading: _where(reading, _seen_at(at_version)))

    def all(self) -> list[TableRecord]:
        """Every table not yet forgotten, live or dropped, by name."""
        return self._store.read(lambda reading: _where(reading, true()))

    def by_id(self, table_id: int) -> TableRecord | None:
        """The table, live or dropped."""
        found = self._store.read(lambda reading: _where(reading, schema.table.c.id == table_id))
        return next(iter(found), None)

    def collectable(self, horizon: int) -> list[TableRecord]:
        """Dropped tables that no version >= horizon sees."""
        return self._store.read(lambda reading: _where(reading, schema.table.c.dropped_vn <= horizon))

    def reserve(self, lease: Lease) -> int:
        """An id that no table had or will have but the one made with it."""
        return fenced(self._store, lease, _reserve)

    def forget(self, lease: Lease, table_id: int) -> None:
        """The files of a dropped table are gone, and its garbage with them; UnknownTable if some version may see it."""
        fenced(self._store, lease, lambda writing: _forget(writing, table_id))


def create_table(writing: Writing, new: NewTable, vn: int) -> None:
    """From version vn on the table is there; TableExists if a live one has the name."""
    reserved = version_row(writing)["next_table_id"]
    if not 0 < new.id < reserved or writing.first(select(schema.table.c.id).where(schema.table.c.id == new.id)):
        raise BadDefinition(f"table id {new.id} was not reserved, or is taken", help="call tables.reserve(lease)")
    live = and_(schema.table.c.name_folded == new.name.casefold(), schema.table.c.dropped_vn.is_(None))
    if (other := writing.value(select(schema.table.c.name).where(live))) is not None:
        raise TableExists(f"there is a table {other!r} already")
    writing.change(insert(schema.table).values(_new_row(new, vn)))


def drop_table(writing: Writing, table_id: int, vn: int) -> None:
    """From version vn on the table is not there; UnknownTable if it was not live."""
    live = and_(schema.table.c.id == table_id, schema.table.c.dropped_vn.is_(None))
    if not writing.change(update(schema.table).where(live).values(dropped_vn=vn)):
        raise UnknownTable(f"there is no live table with id {table_id} to drop")


def advance_rids(writing: Writing, next_rid: Mapping[int, int]) -> None:
    """next_rid of each table is at least this from now on: row identities are never given twice."""
    for table_id, rid in next_rid.items():
        known = schema.table.c.id == table_id
        if writing.first(select(schema.table.c.id).where(known)) is None:
            raise UnknownTable(f"there is no table with id {table_id}")
        writing.change(update(schema.table).where(known, schema.table.c.next_rid < rid).values(next_rid=rid))


def _new_row(new: NewTable, vn: int) -> dict[str, object]:
    return {
        "id": new.id,
        "name": new.name,
        "name_folded": new.name.casefold(),
        "definition": codec.schema_to_text(new.schema),
        "properties": codec.mapping_to_text(new.properties),
        "directory": new.directory,
        "created_vn": vn,
        "dropped_vn": None,
        "next_rid": 0,
    }


def _seen_at(version: int) -> ColumnElement[bool]:
    columns = schema.table.c
    return and_(columns.created_vn <= version, or_(columns.dropped_vn.is_(None), columns.dropped_vn > version))


def _where(reading: Reading, condition: ColumnElement[bool]) -> list[TableRecord]:
    query = select(schema.table).where(condition).order_by(schema.table.c.name_folded, schema.table.c.id)
    return [codec.table_record(row) for row in reading.rows(query)]


def _reserve(writing: Writing) -> int:
    table_id = int(version_row(writing)["next_table_id"])
    set_version(writing, next_table_id=table_id + 1)
    return table_id


def _forget(writing: Writing, table_id: int) -> None:
    horizon = version_row(writing)["gc_horizon"]
    unseen = and_(schema.table.c.id == table_id, schema.table.c.dropped_vn <= horizon)
    if not writing.change(delete(schema.table).where(unseen)):
        raise UnknownTable(f"there is no table with id {table_id} that was dropped before version {horizon + 1}")
    for beside in (schema.garbage, schema.view, schema.log):
        writing.change(delete(beside).where(beside.c.table_id == table_id))
