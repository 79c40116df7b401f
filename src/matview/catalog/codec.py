"""Rows of the database to records and back; text that cannot be read is a corrupt catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.engine import RowMapping

from matview.algebra.schema import Column, Schema
from matview.catalog.records import (
    Edge,
    GroupRecord,
    GroupState,
    Lease,
    LogEntry,
    LoggedFile,
    RefreshRecord,
    SessionRecord,
    TableRecord,
    TransactionRecord,
    VersionState,
    ViewRecord,
)
from matview.errors import BadDefinition, CatalogCorrupt
from matview.groups.graph import Maintain


def schema_to_text(schema: Schema) -> str:
    """{"columns": [[name, type, nullable, hidden], ...], "key": [name, ...]}."""
    columns = [[column.name, column.type, column.nullable, column.hidden] for column in schema.columns]
    return json.dumps({"columns": columns, "key": list(schema.key)})


def schema_from_text(text: str) -> Schema:
    """The inverse of `schema_to_text`."""
    try:
        stored = json.loads(text)
        columns = tuple(_column(*parts) for parts in stored["columns"])
        return Schema(columns, tuple(str(name) for name in stored["key"]))
    except (ValueError, TypeError, KeyError, BadDefinition) as error:
        raise CatalogCorrupt(f"the catalog holds a table definition that cannot be read: {error}") from error


def _column(name: object, kind: object, nullable: object, hidden: object = False) -> Column:
    """Schemas of before there were views have no fourth part."""
    return Column(str(name), str(kind), bool(nullable), bool(hidden))


def mapping_to_text(mapping: Mapping[str, object]) -> str:
    """JSON; what JSON cannot say is written as text, for a commit must not fail over its own summary."""
    return json.dumps(dict(mapping), default=str)


def mapping_from_text(text: str) -> Mapping[str, object]:
    stored = _load(text)
    if not isinstance(stored, dict):
        raise CatalogCorrupt(f"the catalog holds {text[:40]!r} where a JSON object belongs")
    return stored


def ids_to_text(ids: Sequence[int]) -> str:
    return json.dumps(sorted(set(ids)))


def ids_from_text(text: str) -> tuple[int, ...]:
    stored = _load(text)
    if not isinstance(stored, list) or not all(isinstance(item, int) for item in stored):
        raise CatalogCorrupt(f"the catalog holds {text[:40]!r} where a JSON list of table ids belongs")
    return tuple(stored)


def list_from_text(text: str) -> list[str]:
    stored = _load(text)
    if not isinstance(stored, list) or not all(isinstance(item, str) for item in stored):
        raise CatalogCorrupt(f"the catalog holds {text[:40]!r} where a JSON list of names belongs")
    return stored


def clean(text: str | None) -> str | None:
    """Text as every database takes it: no NUL, no half of a character."""
    return None if text is None else text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def version_state(row: RowMapping) -> VersionState:
    return VersionState(
        current_vn=row["current_vn"],
        maintenance_active=row["maintenance_active"],
        versions=row["versions"],
        floor=row["floor"],
        gc_horizon=row["gc_horizon"],
    )


def lease(row: RowMapping) -> Lease:
    return Lease(row["token"], row["holder"], row["acquired_at"], row["expires_at"])


def transaction_record(row: RowMapping) -> TransactionRecord:
    return TransactionRecord(
        token=row["token"],
        vn=row["vn"],
        state=row["state"],
        holder=row["holder"],
        began_at=row["began_at"],
        ended_at=row["ended_at"],
        journal=ids_from_text(row["journal"]),
        summary=mapping_from_text(row["summary"]),
        error=row["error"],
        tail_done=row["tail_done"],
    )


def table_record(row: RowMapping) -> TableRecord:
    return TableRecord(
        id=row["id"],
        name=row["name"],
        schema=schema_from_text(row["definition"]),
        properties=mapping_from_text(row["properties"]),
        directory=row["directory"],
        created_vn=row["created_vn"],
        dropped_vn=row["dropped_vn"],
        next_rid=row["next_rid"],
    )


def session_record(row: RowMapping) -> SessionRecord:
    return SessionRecord(
        id=row["id"],
        version=row["version"],
        holder=row["holder"],
        grain=row["grain"],
        ttl=row["ttl"],
        opened_at=row["opened_at"],
        heartbeat_at=row["heartbeat_at"],
        closed_at=row["closed_at"],
        reason=row["reason"],
    )


def view_record(row: RowMapping) -> ViewRecord:
    return ViewRecord(
        table_id=row["table_id"],
        query=row["query"],
        policy=row["policy"],
        owner_id=row["owner_id"],
        reason=row["reason"],
        maintain=Maintain(row["maintain"]),
        viewgroup=row["viewgroup"],
        schedule=row["schedule"],
    )


def group_record(row: RowMapping) -> GroupRecord:
    return GroupRecord(row["name"], row["schedule"], row["comment"])


def group_state(row: RowMapping) -> GroupState:
    return GroupState(row["name"], row["effective_vn"], row["effective_at"], row["refreshed_at"])


def edge(row: RowMapping) -> Edge:
    return Edge(row["parent_id"], row["child_id"], row["consumed_vn"], row["anew"])


def log_row(entry: LogEntry) -> dict[str, object]:
    return {
        "table_id": entry.table_id,
        "vn": entry.vn,
        "inserted": entry.inserted,
        "updated": entry.updated,
        "deleted": entry.deleted,
        "columns": json.dumps(sorted(entry.columns)),
        "files": json.dumps([[f.path, f.level, f.rows, f.size] for f in entry.files]),
    }


def log_entry(row: RowMapping) -> LogEntry:
    return LogEntry(
        table_id=row["table_id"],
        vn=row["vn"],
        inserted=row["inserted"],
        updated=row["updated"],
        deleted=row["deleted"],
        columns=frozenset(_load(row["columns"])),
        files=tuple(LoggedFile(*parts) for parts in _load(row["files"])),
    )


def refresh_record(row: RowMapping) -> RefreshRecord:
    return RefreshRecord(
        view=row["name_folded"],
        vn=row["vn"],
        strategy=row["strategy"],
        estimated=row["estimated"],
        seconds=row["seconds"],
        rows=row["rows"],
        refreshed_at=row["refreshed_at"],
        at_hand=bool(row["at_hand"]),
    )


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise CatalogCorrupt(f"the catalog holds JSON that cannot be read: {error}") from error
