"""What is said of a name that is no materialized view."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from matview.catalog.catalog import Catalog
from matview.errors import UnknownTable

SUGGESTED = 3


def unknown_view(name: str, views: Iterable[str], *, is_table: bool) -> UnknownTable:
    """A table has the name, or nothing has; the views of the closest names are suggested."""
    what = f"{name} is a table, not a materialized view" if is_table else f"there is no materialized view {name!r}"
    return UnknownTable(what, help=_suggestion(name, {view.casefold(): view for view in sorted(views)}))


def view_names(catalog: Catalog, version: int) -> list[str]:
    """The views of a version, without hidden ones."""
    views, _ = catalog.views.graph()
    return [table.name for table in catalog.tables.live(version) if table.id in views and not table.is_hidden]


def _suggestion(name: str, views: dict[str, str]) -> str:
    meant = get_close_matches(name.casefold(), views, n=SUGGESTED)
    if meant:
        return f"did you mean {' or '.join(views[near] for near in meant)}?"
    return f"views: {', '.join(views.values())}" if views else "there are no views; CREATE MATERIALIZED VIEW makes one"
