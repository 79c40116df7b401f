"""What CREATE, ALTER and DROP MATERIALIZED VIEW would do."""

from __future__ import annotations

from dataclasses import replace

from matview.errors import NotIncremental, TableExists, UnknownTable
from matview.groups.edits import altered, quoted
from matview.groups.graph import Maintain
from matview.groups.named import refuse_if_read
from matview.plan.propose import differences
from matview.plan.propose.inventory import Inventory, Table, View
from matview.plan.propose.proposal import Applied, Definition, Said, Step
from matview.plan.propose.shown import Shown, names_in, reads_of, shown_of
from matview.plan.propose.tables import ABSENT, KEPT, dropped
from matview.sql import statements as st


def create(there: Inventory, said: st.CreateView, before: Said) -> Applied:
    old = there.relation(said.name)
    if old is not None and said.if_not_exists:
        return there, (Step("unchanged", old.kind, old.name, KEPT),)
    if isinstance(old, Table) or (old is not None and ("view", old.name.casefold()) in before):
        raise TableExists(f"there is a {old.kind} {old.name!r} already")
    reads = reads_of(there, said.name, said.query)
    found = shown_of(there, said.query, said.columns, said.policy)
    new = _as_said(said, reads, found)
    if old is None:
        return there.put(new), (Step("create", "view", said.name, _anew(found), (said,)),)
    return _restated(there, old, replace(new, name=old.name), said)


def _as_said(said: st.CreateView, reads: tuple[str, ...], found: Shown) -> View:
    return View(
        name=said.name,
        text=said.text,
        reads=reads,
        shown=found.schema,
        policy=said.policy,
        maintain=said.maintain or Maintain.SNAPSHOT,
        group=said.group,
        schedule=said.schedule,
        cluster_by=said.cluster_by,
        properties=said.properties,
        reason=found.reason,
    )


def _restated(there: Inventory, old: View, new: View, said: st.CreateView) -> Applied:
    """CREATE of a view that is there: whatever differs is altered."""
    if fixed := differences.of_kept(old, said):
        raise TableExists(
            f"there is a view {old.name!r} already, and it is another: {'; '.join(fixed)}",
            help=f"a view keeps these; write DROP MATERIALIZED VIEW {quoted(old.name)} before it is created",
        )
    settings = differences.of_settings(old, new)
    query = differences.of_query(old, said.query, _names(new))
    if not settings and not query:
        return there, (Step("unchanged", "view", old.name),)
    restate = st.RestateView(old.name, new.maintain, new.group, new.schedule, new.policy)
    statements: list[Definition] = [restate] if settings else []
    if query:
        refuse_if_read(there.graph(), old.name)
        # a policy that asks more of the query comes after the query, one that asks less before it
        alter = st.AlterView(old.name, said.query, said.text, said.columns)
        statements.insert(0 if new.policy == "strict" else 1, alter)
    else:
        new = replace(new, reads=old.reads, shown=old.shown, reason=old.reason)
    return there.put(new), (Step("change", "view", old.name, (*settings, *query), tuple(statements)),)


def alter_view(there: Inventory, said: st.AlterView) -> Applied:
    old = _known(there, said.name)
    refuse_if_read(there.graph(), old.name)
    reads = reads_of(there, old.name, said.query)
    found = shown_of(there, said.query, said.columns, old.policy)
    after = replace(old, text=said.text, reads=reads, shown=found.schema, reason=found.reason)
    why = differences.of_query(old, said.query, _names(after))
    if not why:
        return there, (Step("unchanged", "view", old.name),)
    return there.put(after), (Step("change", "view", old.name, (*why, *_anew(found)), (said,)),)


def set_view(there: Inventory, said: st.SetView) -> Applied:
    old = _known(there, said.name)
    node = altered(old.node, said.maintain, said.group, said.schedule)
    policy = said.policy or old.policy
    if policy == "strict" and old.reason is not None:
        raise NotIncremental(f"{old.name} is computed anew each time: {old.reason}")
    group = next(iter(node.declared), None)
    after = replace(old, maintain=node.maintain, group=group, schedule=node.cycle, policy=policy)
    why = differences.of_settings(old, after)
    if not why:
        return there, (Step("unchanged", "view", old.name),)
    return there.put(after), (Step("change", "view", old.name, why, (said,)),)


def drop(there: Inventory, said: st.DropView) -> Applied:
    if said.if_exists and there.relation(said.name) is None:
        return there, (Step("unchanged", "view", said.name, ABSENT),)
    return dropped(there, _known(there, said.name), said)


def _known(there: Inventory, name: str) -> View:
    old = there.relation(name)
    if isinstance(old, View):
        return old
    what = f"{name} is a table, not a materialized view" if old else f"there is no materialized view {name!r}"
    raise UnknownTable(what, help=names_in(there))


def _names(view: View) -> tuple[str, ...] | None:
    return None if view.shown is None else view.shown.visible


def _anew(found: Shown) -> tuple[str, ...]:
    return () if found.reason is None else (f"computed anew at each refresh, since {found.reason}",)
