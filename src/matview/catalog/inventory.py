"""What the catalog has, as definitions: tables, views and viewgroups as CREATE would say them."""

from __future__ import annotations

from collections.abc import Sequence

from matview.algebra.schema import Schema
from matview.catalog.catalog import Catalog
from matview.catalog.records import TableRecord, ViewRecord
from matview.groups.graph import Graph
from matview.groups.schedule import parse
from matview.plan.propose.inventory import Group, Inventory, Table, View
from matview.plan.propose.proposal import Proposal
from matview.plan.propose.propose import propose
from matview.sql.statements import Statement


def inventory_of(catalog: Catalog) -> Inventory:
    """The newest version's; hidden parts belong to the views that they serve."""
    views, _ = catalog.views.graph()
    graph = catalog.groups.graph()
    tables = [table for table in catalog.tables.live(catalog.version().current_vn) if not table.is_hidden]
    made = sorted(tables, key=lambda table: table.id)
    groups = [Group(g.name, parse(g.schedule), g.comment) for g in catalog.groups.declared()]
    return Inventory.of((_relation(table, views.get(table.id), graph) for table in made), groups)


def planned(catalog: Catalog, statements: Sequence[Statement]) -> Proposal:
    """What definitions would do to what is there, and whether that would be legal; nothing is done."""
    return propose(inventory_of(catalog), statements)


def _relation(table: TableRecord, view: ViewRecord | None, graph: Graph) -> Table | View:
    cluster_by, properties = _kept(table)
    if view is None:
        return Table(table.name, table.schema, cluster_by, properties)
    return View(
        name=table.name,
        text=view.query,
        reads=graph[table.name].parents if table.name in graph else (),
        shown=_shown(table.schema),
        policy=view.policy,
        maintain=view.maintain,
        group=view.viewgroup,
        schedule=None if view.schedule is None else parse(view.schedule),
        cluster_by=cluster_by,
        properties=properties,
        reason=view.reason,
    )


def _shown(schema: Schema) -> Schema:
    """What queries see: without hidden columns, and without a key that has any."""
    key = schema.key if set(schema.key) <= set(schema.visible) else ()
    return Schema(tuple(c for c in schema.columns if not c.hidden), key)


def _kept(table: TableRecord) -> tuple[tuple[str, ...], dict[str, str]]:
    clusters, properties = table.properties.get("cluster_by"), table.properties.get("properties")
    return (
        tuple(map(str, clusters)) if isinstance(clusters, list) else (),
        {str(name): str(value) for name, value in properties.items()} if isinstance(properties, dict) else {},
    )
