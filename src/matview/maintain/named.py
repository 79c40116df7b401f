"""What is said of a name that is no materialized view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matview.catalog.catalog import Catalog
from matview.errors import UnknownTable
from matview.spelling import meant


def unknown_view(
    name: str, views: Iterable[str], *, is_table: bool, groups: Iterable[str] | None = None
) -> UnknownTable:
    """A table has the name, or nothing has; the views of the closest names are suggested, and viewgroups, if they would
    have done as well."""
    wanted = "materialized view" if groups is None else "materialized view or viewgroup"
    what = f"{name} is a table, not a {wanted}" if is_table else f"there is no {wanted} {name!r}"
    known = [*sorted(views), *sorted(groups or ())]
    return UnknownTable(what, help=meant(name, known) or _listed(known))


def view_names(catalog: Catalog, version: int) -> list[str]:
    """The views of a version, without hidden ones."""
    views, _ = catalog.views.graph()
    return [table.name for table in catalog.tables.live(version) if table.id in views and not table.is_hidden]


def _listed(views: Sequence[str]) -> str:
    return f"there are: {', '.join(views)}" if views else "there are no views; CREATE MATERIALIZED VIEW makes one"
