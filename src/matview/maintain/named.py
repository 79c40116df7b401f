"""What is said of a name that is no materialized view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from matview.catalog.catalog import Catalog
from matview.errors import UnknownTable

SUGGESTED = 3


def unknown_view(
    name: str, views: Iterable[str], *, is_table: bool, groups: Iterable[str] | None = None
) -> UnknownTable:
    """A table has the name, or nothing has; the views of the closest names are suggested, and viewgroups, if they would
    have done as well."""
    wanted = "materialized view" if groups is None else "materialized view or viewgroup"
    what = f"{name} is a table, not a {wanted}" if is_table else f"there is no {wanted} {name!r}"
    known = [*sorted(views), *sorted(groups or ())]
    return UnknownTable(what, help=_suggestion(name, {one.casefold(): one for one in known}))


def view_names(catalog: Catalog, version: int) -> list[str]:
    """The views of a version, without hidden ones."""
    views, _ = catalog.views.graph()
    return [table.name for table in catalog.tables.live(version) if table.id in views and not table.is_hidden]


def _suggestion(name: str, views: Mapping[str, str]) -> str:
    meant = get_close_matches(name.casefold(), views, n=SUGGESTED)
    if meant:
        return f"did you mean {' or '.join(views[near] for near in meant)}?"
    return (
        f"there are: {', '.join(views.values())}" if views else "there are no views; CREATE MATERIALIZED VIEW makes one"
    )
