"""Sources: which databases are captured, which of their tables, and where those stand in the warehouse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select, true, update
from sqlalchemy.engine import RowMapping

from matview.catalog import codec, schema
from matview.catalog.source_records import SourceRecord, SourceTableRecord, StoredColumn
from matview.catalog.store import Reading, Store, Writing
from matview.errors import CatalogCorrupt, MaintenanceBusy, SourceExists, UnknownSource

_sources, _tables = schema.source.c, schema.source_table.c


class Sources:
    """Look sources up, and note what becomes of them; what belongs to a version changes with its transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list(self) -> tuple[SourceRecord, ...]:
        """All there are, by name."""
        return self._store.read(lambda reading: read_sources(reading, true()))

    def find(self, name: str) -> SourceRecord:
        """The source of that name; UnknownSource says which there are."""
        found = self.list()
        named = next((source for source in found if source.name.casefold() == name.casefold()), None)
        if named is None:
            known = ", ".join(source.name for source in found)
            raise UnknownSource(f"there is no source {name!r}", help=f"sources: {known}" if known else None)
        return named

    def claim(self, name: str, holder: str, ttl: float) -> SourceRecord | None:
        """The source of that name whose adding was cut short, for the holder to clear away; None if there is none.

        SourceExists if it is there, or another is adding it, or removing it.
        """
        return self._store.exclusive(lambda writing: _claim(writing, name, holder, ttl))

    def add(self, source: SourceRecord, ttl: float = 0.0) -> SourceRecord:
        """From now on the name is taken, and the source its holder's; one whose adding was cut short is begun anew."""
        return self._store.exclusive(lambda writing: _add(writing, source, ttl))

    def hold(self, source_id: str, holder: str, ttl: float) -> None:
        """No round takes from the source until it is let go; MaintenanceBusy if it is another's."""
        self._store.exclusive(lambda writing: _hold(writing, source_id, holder, ttl))

    def renew(self, source_id: str, holder: str, ttl: float) -> bool:
        """Whether the source is still the holder's; if so, for so much longer."""
        return self._store.exclusive(lambda writing: _renew(writing, source_id, holder, ttl))

    def release(self, source_id: str, holder: str) -> None:
        """It is nobody's, if it was the holder's."""
        own = (_sources.id == source_id, _sources.holder == holder)
        free = update(schema.source).where(*own).values(holder=None, held_until=0.0)
        self._store.write(lambda writing: writing.change(free))

    def forget(self, source_id: str) -> None:
        """Nothing is left of it at the source; what rounds took from it needs no acknowledgement any more."""
        self._store.exclusive(lambda writing: _forget(writing, source_id))

    def stop(self, source_id: str, table: str, error: str) -> None:
        """Nothing is taken over from this table of the source (its name there) until somebody has mended it."""
        self._store.exclusive(lambda writing: _stop(writing, source_id, table, error))

    def note(self, source_id: str, error: str | None) -> None:
        """How the last attempt to take something over ended."""
        noted = update(schema.source).where(_sources.id == source_id).values(error=codec.clean(error))
        self._store.write(lambda writing: writing.change(noted))


def read_sources(reading: Reading, condition: ColumnElement[bool]) -> tuple[SourceRecord, ...]:
    rows = reading.rows(select(schema.source).where(condition).order_by(_sources.name_folded))
    tables: dict[str, list[SourceTableRecord]] = {}
    for row in reading.rows(select(schema.source_table).order_by(_tables.source_id, _tables.place)):
        tables.setdefault(row["source_id"], []).append(_table(row))
    return tuple(_source(row, tables.get(row["id"], [])) for row in rows)


def feeding(reading: Reading) -> tuple[dict[int, str], dict[int, str]]:
    """The tables of the warehouse, by id, that a source feeds: its name; and why those are stopped that are."""
    both = select(schema.source_table, _sources.name.label("source")).join(
        schema.source, _sources.id == _tables.source_id
    )
    rows = [row for row in reading.rows(both) if row["table_id"] is not None]
    fed = {row["table_id"]: row["source"] for row in rows}
    return fed, {row["table_id"]: row["error"] for row in rows if row["error"] is not None}


# changing -------------------------------------------------------------------------------------------------------------


def activate(writing: Writing, source: SourceRecord) -> None:
    """Its tables are in the warehouse; SourceExists if somebody else has added it meanwhile."""
    own = _sources.holder.is_not_distinct_from(source.holder)
    waiting = (_sources.id == source.id, _sources.state == "adding", own)
    now = {"state": "active", "captured_at": writing.now(), "holder": None, "held_until": 0.0}
    if not writing.change(update(schema.source).where(*waiting).values(**now)):
        raise SourceExists(f"source {source.name} was added, or removed, by somebody else meanwhile")
    _put_tables(writing, source.id, source.tables)


def begin_removal(writing: Writing, source_id: str) -> None:
    writing.change(update(schema.source).where(_sources.id == source_id).values(state="removing"))
    writing.change(update(schema.source_table).where(_tables.source_id == source_id).values(table_id=None))
    touch(writing, [source_id])


def resume(writing: Writing, source_id: str, table: SourceTableRecord) -> None:
    """The table was read whole again, and is as it says now."""
    place = writing.value(select(_tables.place).where(_tables.source_id == source_id, _tables.name == table.name))
    writing.put(schema.source_table, [_table_row(source_id, place or 0, table)])


def touch(writing: Writing, source_ids: Sequence[str]) -> None:
    """A capture that is under way does not know of this, and must not be used."""
    for source_id in source_ids:
        later = update(schema.source).where(_sources.id == source_id).values(sequence=_sources.sequence + 1)
        writing.change(later)


def _claim(writing: Writing, name: str, holder: str, ttl: float) -> SourceRecord | None:
    known = _half_added(writing, name, holder)
    if known is None:
        return None
    held = {"holder": holder, "held_until": writing.now() + ttl}
    writing.change(update(schema.source).where(_sources.id == known["id"]).values(**held))
    return read_sources(writing, _sources.id == known["id"])[0]


def _half_added(writing: Writing, name: str, holder: str | None) -> RowMapping | None:
    """The row of an adding that was cut short; SourceExists if it is more than that, or another is at it."""
    known = writing.first(select(schema.source).where(_sources.name_folded == name.casefold()))
    if known is None:
        return None
    if known["state"] != "adding":
        what = "there is a source" if known["state"] == "active" else "somebody is removing the source"
        raise SourceExists(f"{what} {known['name']} already")
    if _is_anothers(writing, known, holder):
        left = known["held_until"] - writing.now()
        raise SourceExists(
            f"somebody is adding the source {known['name']} already",
            help=f"wait for it; if {known['holder']} has ended, its claim does so in {left:.0f} s",
        )
    return known


def _is_anothers(writing: Writing, row: RowMapping, holder: str | None) -> bool:
    return bool(row["holder"] != holder and row["held_until"] > writing.now())


def _hold(writing: Writing, source_id: str, holder: str, ttl: float) -> None:
    known = writing.first(select(schema.source).where(_sources.id == source_id))
    if known is not None and _is_anothers(writing, known, holder):
        raise MaintenanceBusy(f"source {known['name']} is being read whole by {known['holder']}")
    held = {"holder": holder, "held_until": writing.now() + ttl}
    writing.change(update(schema.source).where(_sources.id == source_id).values(**held))
    touch(writing, [source_id])


def _renew(writing: Writing, source_id: str, holder: str, ttl: float) -> bool:
    own = (_sources.id == source_id, _sources.holder == holder)
    return bool(writing.change(update(schema.source).where(*own).values(held_until=writing.now() + ttl)))


def _add(writing: Writing, source: SourceRecord, ttl: float) -> SourceRecord:
    known = _half_added(writing, source.name, source.holder)
    if known is not None:
        _forget(writing, known["id"])
    added = replace(source, state="adding", added_at=writing.now(), held_until=writing.now() + ttl)
    writing.change(insert(schema.source).values(_row(added)))
    _put_tables(writing, added.id, added.tables)
    return added


def _forget(writing: Writing, source_id: str) -> None:
    writing.change(delete(schema.source).where(_sources.id == source_id))
    writing.change(delete(schema.source_table).where(_tables.source_id == source_id))
    gone = schema.round_source.c.source_id == source_id
    writing.change(update(schema.round_source).where(gone).values(acknowledged=True))


def _stop(writing: Writing, source_id: str, table: str, error: str) -> None:
    named = (_tables.source_id == source_id, _tables.name == table, _tables.error.is_(None))
    if writing.change(update(schema.source_table).where(*named).values(error=codec.clean(error))):
        touch(writing, [source_id])


def _put_tables(writing: Writing, source_id: str, tables: Sequence[SourceTableRecord]) -> None:
    writing.put(schema.source_table, [_table_row(source_id, place, table) for place, table in enumerate(tables)])


# rows -----------------------------------------------------------------------------------------------------------------


def _row(source: SourceRecord) -> dict[str, object]:
    plain = {name: getattr(source, name) for column in schema.source.c if (name := column.name) != "name_folded"}
    return plain | {"name_folded": source.name.casefold()}


def _source(row: RowMapping, tables: Sequence[SourceTableRecord]) -> SourceRecord:
    plain = {name: value for name, value in row.items() if name != "name_folded"}
    return SourceRecord(tables=tuple(tables), **plain)


def _table_row(source_id: str, place: int, table: SourceTableRecord) -> dict[str, object]:
    columns = [[c.name, c.source_type, c.type, c.nullable] for c in table.columns]
    return {
        "source_id": source_id,
        "name": table.name,
        "place": place,
        "table_name": table.table,
        "table_id": table.table_id,
        "identity": table.identity,
        "definition": json.dumps({"columns": columns, "key": list(table.key)}),
        "replicate": table.replicate,
        "error": table.error,
    }


def _table(row: RowMapping) -> SourceTableRecord:
    stored: Any = codec.mapping_from_text(row["definition"])
    try:
        columns = tuple(StoredColumn(*parts) for parts in stored["columns"])
        key = tuple(stored["key"])
    except (TypeError, KeyError) as error:
        raise CatalogCorrupt(f"the catalog holds a table of a source that cannot be read: {error}") from error
    return SourceTableRecord(
        name=row["name"],
        table=row["table_name"],
        columns=columns,
        key=key,
        identity=row["identity"],
        table_id=row["table_id"],
        replicate=row["replicate"],
        error=row["error"],
    )
