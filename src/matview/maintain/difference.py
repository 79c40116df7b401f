"""A view against its query computed anew: what is maintained must equal what would be computed."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from sqlglot import exp

from matview.algebra.nodes import WEIGHT, Project, Scan
from matview.algebra.scalars import column
from matview.algebra.schema import Field, Schema
from matview.delta.signed import difference, kept
from matview.maintain.definitions import Lookup, whole
from matview.maintain.named import unknown_view, view_names
from matview.sql.parse import parse_one
from matview.sql.render import query as rendered
from matview.sql.statements import Query
from matview.storage.query import Found, run_query
from matview.storage.runtime import Runtime


def difference_of(runtime: Runtime, view: str) -> DataFrame:
    """Both at the newest version, hidden parts left aside: rows with a `weight`, none if all is well."""
    state = runtime.catalog.version()

    def find(reference: exp.Table) -> Found:
        table = runtime.tables.table(runtime.record(reference, state.current_vn), state.versions)
        return Found(table, table.log.load())

    def run(query: exp.Expr, bound: Mapping[str, DataFrame]) -> DataFrame:
        return run_query(runtime.engine, query, find, state.current_vn, bound=bound)

    def named(reference: exp.Table) -> tuple[str, Schema]:
        record = runtime.record(reference, state.current_vn)
        return record.name, record.schema

    record = runtime.catalog.tables.find(view, state.current_vn)
    stored = runtime.catalog.views.get(record.id) if record else None
    if record is None or stored is None:
        raise unknown_view(view, view_names(runtime.catalog, state.current_vn), is_table=record is not None)
    statement = parse_one(stored.query)
    assert isinstance(statement, Query)
    node = whole(Lookup(runtime.engine, named, run), statement.query, record.schema.visible)
    names = record.schema.visible
    held = Scan(record.name, names, tuple(Field(name) for name in names))
    signed = difference(node, held)
    shown = Project(signed, (*kept(names), ("weight", column(WEIGHT))))
    return run(rendered(shown), {})
