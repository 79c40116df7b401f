"""What is said of a viewgroup's name, or of a table's, that will not do."""

from __future__ import annotations

from matview.errors import UnknownViewgroup, UnsupportedStatement, ViewgroupExists, ViewgroupInUse
from matview.groups.edits import quoted
from matview.groups.graph import Graph


def unknown_group(name: str, *, of_a_view: bool) -> UnknownViewgroup:
    """Nothing has the name, or a view has it, whose own viewgroup is called so."""
    if of_a_view:
        return UnknownViewgroup(
            f"{name} is no viewgroup that somebody made: it belongs to view {name}",
            help=f"ALTER MATERIALIZED VIEW {quoted(name)} SET REFRESH ..., or SET VIEWGROUP ...",
        )
    return UnknownViewgroup(f"there is no viewgroup {name}")


def group_exists(name: str) -> ViewgroupExists:
    return ViewgroupExists(f"there is a viewgroup {name} already")


def group_in_use(name: str, views: tuple[str, ...]) -> ViewgroupInUse:
    return ViewgroupInUse(
        f"viewgroup {name} has views: {', '.join(views)}",
        help=f"put them elsewhere, or drop them with it: DROP VIEWGROUP {quoted(name)} CASCADE",
    )


def no_table(name: str) -> UnsupportedStatement:
    """DROP TABLE of a view."""
    return UnsupportedStatement(f"{name} is a materialized view", help=f"DROP MATERIALIZED VIEW {quoted(name)}")


def refuse_if_read(graph: Graph, name: str) -> None:
    """What views read cannot go before them."""
    below = graph.descendants(name)
    if below:
        names = [quoted(view) for view in graph.order if view in below]
        raise UnsupportedStatement(
            f"{name} is read by {', '.join(names)}",
            help=f"drop {', '.join(reversed(names))} first, or all of them at once: DROP ... {quoted(name)} CASCADE",
        )


def with_readers(graph: Graph, names: tuple[str, ...]) -> tuple[str, ...]:
    """These and all views that are derived from them, readers first."""
    going = set(names).union(*(graph.descendants(name) for name in names))
    return tuple(name for name in reversed(graph.order) if name in going)
