"""What CREATE TABLE and DROP TABLE would do."""

from __future__ import annotations

from matview.errors import TableExists, UnknownTable
from matview.groups.named import no_table, refuse_if_read, with_readers
from matview.plan.propose import differences
from matview.plan.propose.inventory import Inventory, Table, View
from matview.plan.propose.proposal import Applied, Said, Step
from matview.plan.propose.shown import names_in
from matview.sql import statements as st

KEPT = ("kept as it is",)
ABSENT = ("it is not there",)


def create(there: Inventory, said: st.CreateTable, before: Said) -> Applied:
    old = there.relation(said.name)
    if old is None:
        new = Table(said.name, said.schema, said.cluster_by, said.properties)
        return there.put(new), (Step("create", "table", said.name, (), (said,)),)
    if said.if_not_exists:
        return there, (Step("unchanged", old.kind, old.name, KEPT),)
    if isinstance(old, View) or ("table", old.name.casefold()) in before:
        raise TableExists(f"there is a {old.kind} {old.name!r} already")
    if found := differences.of_table(old, said):
        raise TableExists(
            f"there is a table {old.name!r} already, and it is another: {'; '.join(found)}",
            help="a table keeps what it was made with; choose another name, or DROP TABLE first",
        )
    return there, (Step("unchanged", "table", old.name),)


def drop(there: Inventory, said: st.DropTable) -> Applied:
    old = there.relation(said.name)
    if old is None and said.if_exists:
        return there, (Step("unchanged", "table", said.name, ABSENT),)
    if old is None:
        raise UnknownTable(f"there is no table {said.name!r}", help=names_in(there))
    if isinstance(old, View):
        raise no_table(old.name)
    return dropped(there, old, said)


def dropped(there: Inventory, old: Table | View, said: st.DropTable | st.DropView) -> Applied:
    """With its readers, if CASCADE is said; refused otherwise, if there are any."""
    graph = there.graph()
    if not said.cascade:
        refuse_if_read(graph, old.name)
    names = with_readers(graph, (old.name,))
    beside = tuple(gone(there, name, (f"derived from {old.name}",)) for name in names if name != old.name)
    return there.without(names), (*beside, Step("drop", old.kind, old.name, (), (said,)))


def gone(there: Inventory, name: str, why: tuple[str, ...]) -> Step:
    """Something that goes with something else."""
    return Step("drop", there.relations[name.casefold()].kind, name, why)
