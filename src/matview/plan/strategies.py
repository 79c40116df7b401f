"""The three ways to bring a part up to date. Each gives an action, or None where it does not apply.

delta      the change of the query, from the changes of its tables
affected   the groups, partitions or rows that the changes meet, computed anew
full       everything computed anew
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from matview.algebra.nodes import Node, Outer, Project, Stored, TopK, Window
from matview.algebra.scalars import call, column, conjunction, number, same, substituted
from matview.delta.derive import change
from matview.delta.signed import KEY_PREFIX, among, difference, kept, keys, net
from matview.plan.definition import Part
from matview.plan.paired import paired
from matview.plan.steps import NEW, OLD, THERE, Action, Apply, Merge, Rebuild
from matview.plan.summary import State, Summary
from matview.plan.topmost import top_change


def delta(
    part: Part, changed: Collection[str], *, only_inserts: bool = False, updated: Collection[str] = ()
) -> Action | None:
    """What the changes add. None when some aggregate cannot be added to.

    `updated` are the columns that updates touched, if one table alone changed; none: updates come as pairs of rows.
    """
    if part.summary is None:
        moved = top_change(part, changed) or change(part.node, changed)
        return None if moved is None else Apply(net(moved))
    moved = change(part.summary.aggregate.input, changed)
    if moved is None or part.summary.method == "affected":
        return None
    if part.summary.method == "growing" and not only_inserts:
        return None
    if updated and len(changed) == 1:
        (table,) = changed
        if (found := paired(part.summary, table, updated)) is not None:
            return _accumulated(*found)
    return _accumulated(part.summary, moved)


def affected(part: Part, changed: Collection[str]) -> Action | None:
    """What the changes meet, computed anew."""
    if part.summary is not None:
        moved = change(part.summary.aggregate.input, changed)
        return None if moved is None else _replaced(part.summary, moved)
    return _affected_rows(part, changed)


def full(part: Part) -> Action:
    return Rebuild(part.full)


# summaries ------------------------------------------------------------------------------------------------------------


def _accumulated(summary: Summary, moved: Node) -> Merge:
    """Each state takes in what the change adds; a group without rows goes, but for the one of a global aggregate."""
    states = {state.column: _new_state(state, summary) for state in summary.states}
    keys_now = {key: _new(key) for key in summary.keys}
    over_states = {**dict(summary.values), **summary.places}
    shown = {name: substituted(substituted(e, over_states), {**states, **keys_now}) for name, e in summary.outputs}
    stored = {**keys_now, **states, **shown}
    assert summary.total is not None
    empty = exp.LTE(this=states[summary.total].copy(), expression=number(0))
    gone = empty if summary.aggregate.keys else exp.false()
    return Merge(summary.gained(moved), tuple((name, stored[name]) for name in summary.stored), gone)


def _new_state(state: State, summary: Summary) -> exp.Expr:
    old, gained = _old(state.column), _new(state.column)
    if state.method != "add":
        return call(state.method, old, gained)
    summed: exp.Expr = exp.paren(exp.Add(this=_or_zero(old), expression=_or_zero(gained)))
    if state.kind is not None:
        summed = exp.cast(summed, state.kind, dialect="spark")
    if state.guard is None:
        return summed
    guard = next(s for s in summary.states if s.column == state.guard)
    there = exp.GT(this=_new_state(guard, summary), expression=number(0))
    return exp.Case(ifs=[exp.If(this=there, true=summed)])


def _or_zero(value: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=value, expressions=[number(0)])


def _new(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=NEW)


def _old(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=OLD)


def _replaced(summary: Summary, moved: Node) -> Merge:
    """The groups of the changed rows as they are now; those that are no more go."""
    rows, names = summary.aggregate.input, summary.aggregate.keys
    if not names:
        return _merge(summary, summary.computed(rows), exp.false())
    found = keys(moved, names)
    now = Project(summary.computed(among(rows, found, names)), (*kept(summary.stored), (THERE, exp.true())))
    asked = Project(found, tuple((f"{KEY_PREFIX}{i}", column(n)) for i, n in enumerate(found.names)))
    on = conjunction(*(same(column(f"{KEY_PREFIX}{i}"), column(key)) for i, key in enumerate(summary.keys)))
    joined = Outer("left", asked, now, on)
    outputs = {name: column(name) for name in (*summary.stored, THERE)}
    outputs |= {key: column(f"{KEY_PREFIX}{i}") for i, key in enumerate(summary.keys)}
    gone = exp.not_(exp.Coalesce(this=_new(THERE), expressions=[exp.false()]))
    return _merge(summary, Project(joined, tuple(outputs.items())), gone)


def _merge(summary: Summary, rows: Node, gone: exp.Expr) -> Merge:
    return Merge(rows, tuple((name, _new(name)) for name in summary.stored), gone)


# other views ----------------------------------------------------------------------------------------------------------


def _affected_rows(part: Part, changed: Collection[str]) -> Action | None:
    """Windows and top-k at the root of a view: what is stored tells how it was, so only what is now is computed."""
    stored = Stored(part.name, part.node.fields)
    root, outputs = (part.node.input, part.node.outputs) if isinstance(part.node, Project) else (part.node, ())
    moved = change(root.inputs[0], changed) if len(root.inputs) == 1 else None
    if moved is None:
        return None
    match root:
        case TopK():
            return Apply(difference(part.node, stored))
        case Window(input, partition) if partition:
            shown = {e.name: name for name, e in outputs if isinstance(e, exp.Column)} if outputs else None
            places = [shown.get(name) if shown is not None else name for name in partition]
            if None in places:
                return None
            found = keys(moved, partition)
            now: Node = replace(root, input=among(input, found, partition))
            now = Project(now, outputs) if outputs else now
            return Apply(difference(now, _among_places(stored, found, [p for p in places if p])))
    return None


def _among_places(stored: Stored, found: Node, places: list[str]) -> Node:
    """The stored rows of the partitions that were found."""
    asked = Project(found, tuple((KEY_PREFIX + p, column(n)) for p, n in zip(places, found.names, strict=True)))
    return among(stored, asked, places)
