"""What CREATE, ALTER and DROP VIEWGROUP would do."""

from __future__ import annotations

from dataclasses import replace

from matview.groups.assign import assigned
from matview.groups.named import group_exists, group_in_use, unknown_group, with_readers
from matview.plan.propose import differences
from matview.plan.propose.inventory import Group, Inventory, View
from matview.plan.propose.proposal import Applied, Said, Step
from matview.plan.propose.tables import ABSENT, KEPT, gone
from matview.sql import statements as st


def create(there: Inventory, said: st.CreateViewgroup, before: Said) -> Applied:
    old = there.group(said.name)
    if old is None:
        new = Group(said.name, said.schedule, said.comment)
        return there.put_group(new), (Step("create", "viewgroup", said.name, (str(said.schedule),), (said,)),)
    if said.if_not_exists:
        return there, (Step("unchanged", "viewgroup", old.name, KEPT),)
    if ("viewgroup", old.name.casefold()) in before:
        raise group_exists(old.name)
    return _changed(there, old, st.AlterViewgroup(old.name, said.schedule, said.comment))


def alter(there: Inventory, said: st.AlterViewgroup) -> Applied:
    return _changed(there, _known(there, said.name), said)


def _changed(there: Inventory, old: Group, said: st.AlterViewgroup) -> Applied:
    after = replace(old, schedule=said.schedule, comment=old.comment if said.comment is None else said.comment)
    why = differences.of_group(old, after)
    if not why:
        return there, (Step("unchanged", "viewgroup", old.name),)
    return there.put_group(after), (Step("change", "viewgroup", old.name, why, (said,)),)


def rename(there: Inventory, said: st.RenameViewgroup) -> Applied:
    """Its views go with it."""
    old, new = _known(there, said.name), said.new_name
    if there.group(new) is not None and new.casefold() != old.name.casefold():
        raise group_exists(new)
    after = there.without_group(old.name).put_group(replace(old, name=new))
    for view in there.relations.values():
        if isinstance(view, View) and view.group is not None and view.group.casefold() == old.name.casefold():
            after = after.put(replace(view, group=new))
    return after, (Step("change", "viewgroup", old.name, (f"to be called {new}",), (said,)),)


def drop(there: Inventory, said: st.DropViewgroup) -> Applied:
    if said.if_exists and there.group(said.name) is None:
        return there, (Step("unchanged", "viewgroup", said.name, ABSENT),)
    old, graph = _known(there, said.name), there.graph()
    views = assigned(graph).members(old.name)
    if views and not said.cascade:
        raise group_in_use(old.name, views)
    names = with_readers(graph, views) if views else ()
    beside = tuple(gone(there, name, (f"with viewgroup {old.name}",)) for name in names)
    return there.without(names).without_group(old.name), (*beside, Step("drop", "viewgroup", old.name, (), (said,)))


def _known(there: Inventory, name: str) -> Group:
    found = there.group(name)
    if found is None:
        raise unknown_group(name, of_a_view=isinstance(there.relation(name), View))
    return found
