"""Changes to a graph that a user can make, one node at a time: what each does, in words and in SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from matview.groups.graph import BASE, BaseTable, Graph, Maintain, Node, View
from matview.groups.schedule import Schedule

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SetMaintain:
    """Another policy; a snapshot view is put into a group, any other goes where the system puts it."""

    view: str
    maintain: Maintain
    group: str | None = None

    def applied(self, graph: Graph) -> Graph:
        return graph.with_node(altered(_view(graph, self.view), self.maintain, self.group))

    @property
    def sentence(self) -> str:
        if self.group is None or self.group == self.view:
            return f"make {self.view} {_policy(self.maintain)}"
        return f"make {self.view} {_policy(self.maintain)} in viewgroup {self.group}"

    @property
    def clauses(self) -> tuple[str, ...]:
        group = () if self.group is None or self.group == self.view else (f"SET VIEWGROUP {quoted(self.group)}",)
        return (f"SET MAINTAIN {self.maintain.upper()}", *group)


@dataclass(frozen=True, slots=True)
class SetGroup:
    """Another viewgroup; the one named as the view is its own."""

    view: str
    group: str

    def applied(self, graph: Graph) -> Graph:
        if isinstance(graph[self.view], BaseTable):
            return graph.with_node(BaseTable(self.view) if self.group == BASE else BaseTable(self.view, (self.group,)))
        return graph.with_node(altered(_view(graph, self.view), group=self.group))

    @property
    def sentence(self) -> str:
        place = "a viewgroup of its own" if self.group == self.view else f"viewgroup {self.group}"
        return f"put {self.view} into {place}"

    @property
    def clauses(self) -> tuple[str, ...]:
        return (f"SET VIEWGROUP {quoted(self.group)}",)


@dataclass(frozen=True, slots=True)
class SetCycle:
    """The refresh cycle of the view's group."""

    view: str
    schedule: Schedule

    def applied(self, graph: Graph) -> Graph:
        return graph.with_node(altered(_view(graph, self.view), cycle=self.schedule))

    @property
    def sentence(self) -> str:
        return f"refresh {self.view} {self.schedule}, as its viewgroup is"

    @property
    def clauses(self) -> tuple[str, ...]:
        return (f"SET REFRESH {self.schedule}",)


@dataclass(frozen=True, slots=True)
class Redefine:
    """Another query, over what some parents read instead of over them."""

    view: str
    without: tuple[str, ...]
    reads: tuple[str, ...]

    def applied(self, graph: Graph) -> Graph:
        return graph.with_node(replace(_view(graph, self.view), parents=self.reads))

    @property
    def sentence(self) -> str:
        return f"redefine {self.view} over {_list(self.reads)}, without {_list(self.without)}"

    @property
    def clauses(self) -> tuple[str, ...]:
        return (f"AS SELECT ... FROM {', '.join(map(quoted, self.reads))}",)


Edit = SetMaintain | SetGroup | SetCycle | Redefine


def altered(
    view: View, maintain: Maintain | None = None, group: str | None = None, cycle: Schedule | None = None
) -> View:
    """What ALTER MATERIALIZED VIEW ... SET makes of a view.

    With another policy comes another place: the group of before is forgotten unless one is named beside it, and a cycle
    stays with a snapshot view only.
    """
    if maintain not in (None, view.maintain):
        view = replace(view, maintain=maintain, declared=(), cycle=None)
    declared = view.declared if group is None else (group,)
    return replace(view, declared=declared, cycle=view.cycle if cycle is None else cycle)


def past(graph: Graph, view: View, parents: tuple[str, ...]) -> Redefine:
    """The view with the parents of these parents in place of them."""
    reads = [name for p in view.parents for name in (graph[p].parents if p in parents else (p,))]
    return Redefine(view.name, parents, tuple(dict.fromkeys(reads)))


def sentence(edits: tuple[Edit, ...]) -> str:
    """What edits that belong together do, in words."""
    places = {edit.group if isinstance(edit, SetGroup) and edit.group != edit.view else None for edit in edits}
    if len(edits) > 1 and len(places) == 1 and None not in places:
        return f"put {_list(tuple(edit.view for edit in edits))} into viewgroup {places.pop()}"
    return " and ".join(edit.sentence for edit in edits)


def statements(
    edits: Iterable[Edit], tables: frozenset[str] = frozenset(), new: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """The SQL: one statement for each view, so that none has to pass through something illegal.

    Views that are `new` are not there yet: their CREATE says it, and goes first where another joins their viewgroup.
    """
    by_view: dict[str, list[str]] = {}
    for edit in edits:
        if isinstance(edit, SetMaintain | SetGroup) and edit.group in new and edit.group != edit.view:
            by_view.setdefault(edit.group, [])
        by_view.setdefault(edit.view, []).extend(edit.clauses)
    return tuple(_statement(view, clauses, view in tables, view in new) for view, clauses in by_view.items())


def _statement(name: str, clauses: list[str], is_table: bool, is_new: bool) -> str:
    if is_table:
        return f"CREATE TABLE {quoted(name)} (...), without a viewgroup"
    if is_new:
        said = [clause.replace("SET VIEWGROUP", "IN VIEWGROUP").removeprefix("SET ") for clause in clauses]
        query = [clause for clause in said if clause.startswith("AS ")]
        others = [clause for clause in said if clause not in query]
        return " ".join([f"CREATE MATERIALIZED VIEW {quoted(name)}", *others, "...", *query])
    return f"ALTER MATERIALIZED VIEW {quoted(name)} {', '.join(clauses)}"


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _policy(maintain: Maintain) -> str:
    return "a snapshot view" if maintain is Maintain.SNAPSHOT else str(maintain)


def _list(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _view(graph: Graph, name: str) -> View:
    node: Node = graph[name]
    assert isinstance(node, View)
    return node
