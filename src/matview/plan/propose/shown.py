"""What a view to be would read and show, as far as names tell; types are for Spark to find out."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.passes import normalised
from matview.algebra.schema import Column, Schema
from matview.errors import BadDefinition, CyclicViews, NotIncremental, UnknownTable
from matview.plan.definition import refuse_if_whole
from matview.plan.propose.inventory import Inventory
from matview.sql.lower import lower
from matview.sql.pieces import place_of
from matview.sql.statements import RefreshPolicy
from matview.versions.references import table_references


@dataclass(frozen=True, slots=True)
class Shown:
    """What queries would see of a view, None where only Spark can tell; why it would be computed anew, if so."""

    schema: Schema | None
    reason: str | None = None


class _OnlySparkKnows(Exception):
    """A view to be is read whose columns are not known."""


def reads_of(there: Inventory, view: str, query: exp.Expr) -> tuple[str, ...]:
    """The tables and views that a query reads, as they are spelt; the view itself must not be among them."""
    found: dict[str, None] = {}
    for reference in table_references(query):
        if not reference.db and reference.name.casefold() == view.casefold():
            raise CyclicViews(f"views cannot read themselves: {view} reads {view}", where=place_of(reference))
        known = None if reference.db else there.relation(reference.name)
        if known is None:
            raise UnknownTable(
                f"there is no table {reference.sql('spark')!r}", where=place_of(reference), help=names_in(there)
            )
        found[known.name] = None
    return tuple(found)


def names_in(there: Inventory) -> str:
    return f"tables and views: {', '.join(r.name for r in there.relations.values()) or 'none'}"


def shown_of(there: Inventory, query: exp.Expr, columns: tuple[str, ...], policy: RefreshPolicy) -> Shown:
    """Raises what the query's names make impossible; with policy 'strict', also what no rule maintains."""
    is_typed = True

    def schema_of(reference: exp.Table) -> Schema:
        nonlocal is_typed
        known = there.relation(reference.name)
        if known is None or known.shown is None:
            raise _OnlySparkKnows
        is_typed = is_typed and all(column.type for column in known.shown.columns)
        return known.shown

    try:
        node = normalised(lower(query, schema_of))
        refuse_if_whole(node)
    except _OnlySparkKnows:
        return Shown(None)
    except NotIncremental as error:
        if not is_typed:
            return Shown(None)
        if policy == "strict":
            raise
        return Shown(None, error.what)
    if columns and len(columns) != len(node.names):
        raise BadDefinition(f"the view names {len(columns)} columns, its query gives {len(node.names)}")
    return Shown(Schema(tuple(Column(name, "") for name in columns or node.names)))
