"""Schema 3: viewgroups, the policies of views, effective states.

Views of before were refreshed on demand, after the views that they read. So each is a snapshot view, and those that
read one another are put into one viewgroup, named after one of them: what was refreshed together still is.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, text

STATEMENTS = (
    "ALTER TABLE matview_version ADD COLUMN changed_vn BIGINT NOT NULL DEFAULT 1",
    "ALTER TABLE matview_version ADD COLUMN defined_vn BIGINT NOT NULL DEFAULT 1",
    "UPDATE matview_version SET changed_vn = current_vn, defined_vn = current_vn",
    "ALTER TABLE matview_view ADD COLUMN maintain TEXT NOT NULL DEFAULT 'snapshot'"
    " CHECK (maintain IN ('immediate', 'deferred', 'snapshot'))",
    "ALTER TABLE matview_view ADD COLUMN viewgroup TEXT",
    "ALTER TABLE matview_view ADD COLUMN schedule TEXT",
    """
    CREATE TABLE matview_viewgroup (
        name_folded TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        schedule TEXT NOT NULL,
        comment TEXT
    )""",
    """
    CREATE TABLE matview_state (
        name_folded TEXT NOT NULL,
        vn BIGINT NOT NULL,
        name TEXT NOT NULL,
        effective_vn BIGINT,
        effective_at DOUBLE PRECISION,
        refreshed_at DOUBLE PRECISION,
        PRIMARY KEY (name_folded, vn)
    )""",
)

LIVE_VIEWS = """
    SELECT v.table_id AS id, t.name AS name, coalesce(v.owner_id, v.table_id) AS owner, t.created_vn AS created_vn
    FROM matview_view v JOIN matview_table t ON t.id = v.table_id WHERE t.dropped_vn IS NULL ORDER BY v.table_id"""


def upgrade(connection: Connection) -> None:
    """From schema 2 to schema 3."""
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
    for views in _read_one_another(connection):
        _group(connection, views)


def _read_one_another(connection: Connection) -> list[list[dict[str, Any]]]:
    """The views, hidden ones left out, in sets that have nothing to do with each other; each with what it consumed."""
    live = [dict(row) for row in connection.execute(text(LIVE_VIEWS)).mappings()]
    owner = {view["id"]: view["owner"] for view in live}
    shown = {view["id"]: view | {"consumed": None} for view in live if view["id"] == view["owner"]}
    together = {table_id: [view] for table_id, view in shown.items()}
    for edge in connection.execute(text("SELECT parent_id, child_id, consumed_vn FROM matview_edge")).mappings():
        child, parent = (owner.get(edge[end], 0) for end in ("child_id", "parent_id"))
        if child not in shown:
            continue
        if parent in shown:
            _unite(together, parent, child)
        before = shown[child]["consumed"]
        shown[child]["consumed"] = min(edge["consumed_vn"], edge["consumed_vn"] if before is None else before)
    return list({id(views): views for views in together.values()}.values())


def _unite(together: dict[int, list[dict[str, Any]]], one: int, other: int) -> None:
    if together[one] is not together[other]:
        joined = together[one] + together[other]
        for view in joined:
            together[view["id"]] = joined


def _group(connection: Connection, views: list[dict[str, Any]]) -> None:
    """One view has a group of its own; several are declared for one."""
    name = min(views, key=lambda view: view["id"])["name"]
    if len(views) > 1:
        made = "INSERT INTO matview_viewgroup (name_folded, name, schedule) VALUES (:folded, :name, 'ON DEMAND')"
        connection.execute(text(made), {"folded": name.casefold(), "name": name})
        for view in views:
            put = "UPDATE matview_view SET viewgroup = :name WHERE table_id = :id"
            connection.execute(text(put), {"name": name, "id": view["id"]})
    reached = min(view["created_vn"] if view["consumed"] is None else view["consumed"] for view in views)
    known = text("SELECT ended_at FROM matview_transaction WHERE vn = :vn AND state = 'committed'")
    at = connection.execute(known, {"vn": reached}).scalar() or time.time()
    made = "INSERT INTO matview_state VALUES (:folded, :vn, :name, :vn, :at, :at)"
    connection.execute(text(made), {"folded": name.casefold(), "name": name, "vn": reached, "at": at})
