"""Algorithm 3.2, refresh: what changed, which strategy, one step per stored relation.

refresh(v, ..):  hidden parts, then the views themselves, each after those of them that it reads, level by level;
                 the steps of a level have no need of one another: what they have in common is computed once,
                 then they run side by side. What is not named is read as it is stored.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import compress
from typing import Literal

from matview.algebra.schema import RESERVED_PREFIX
from matview.catalog.records import LogEntry, RefreshRecord
from matview.maintain.change.working import Counts, Working
from matview.maintain.context import Context
from matview.maintain.views import run
from matview.maintain.views.blamed import blamed
from matview.maintain.views.edges import is_anew, note_edge
from matview.maintain.views.pending import Pending, pending
from matview.plan.choice import Situation, choose, with_remote
from matview.plan.cost import TableFacts, staying
from matview.plan.definition import Part
from matview.plan.sharing import share, widened
from matview.plan.steps import Apply, Merge, Rebuild, Step
from matview.storage.engine import named_table
from matview.storage.few import are_few
from matview.storage.snapshot import DataFile

SIDE_BY_SIDE = 4


Mode = Literal["auto", "delta", "affected", "full"]
"""Which strategy: the cheapest, or the one that is named, where it applies."""


def refresh(context: Context, names: Sequence[str], mode: Mode = "auto") -> Counts:
    """Each of these views equals its query over the tables as this transaction sees them; no other is touched."""
    counts = Counts()
    for level in _levels(context, names):
        counts += _refresh_level(context, level, mode)
    return counts


# the order ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Target:
    """A part, the table that holds it, and the view that it is a part of."""

    part: Part
    working: Working
    view: str


def _levels(context: Context, names: Iterable[str]) -> list[list[_Target]]:
    """The parts of the views; each level reads only those before it, and what is not to be refreshed."""
    depth: dict[str, int] = {}
    targets: dict[str, _Target] = {}
    wanted = {context.tables[name].table.name for name in names}

    def visit(name: str) -> int:
        """How deep a table is; views are taken in on the way."""
        working = context.tables[name]
        own = working.table.name
        if own not in depth and own in wanted:
            for part, stored in _parts(context, working):
                depth[part.name] = 1 + max((visit(parent) for parent in part.reads), default=0)
                targets[part.name] = _Target(part, stored, own)
        return depth.get(own, 0)

    for name in names:
        visit(name)
    levels: dict[int, list[_Target]] = {}
    for name, target in targets.items():
        levels.setdefault(depth[name], []).append(target)
    return [levels[number] for number in sorted(levels)]


def _parts(context: Context, view: Working) -> list[tuple[Part, Working]]:
    """What is stored for a view, as its query says today."""
    assert view.view is not None
    if view.view.owner_id is not None:
        return []
    written, shown = view.view, view.table.schema.visible
    parts, _ = context.definitions.of(context.lookup, view.table.name, written.query, shown, written.policy)
    stored = {w.table.name: w for w in (*context.tables.owned(view.table.id), view)}
    return [(part, stored[part.name]) for part in parts]


# a level --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Due:
    """A target of which something that matters has changed, or that is to be computed anew."""

    target: _Target
    changed: dict[str, Pending]
    mode: Mode


@dataclass(frozen=True)
class _Planned:
    """What is to be done to a target, and why."""

    target: _Target
    step: Step
    situation: Situation
    changed: run.Changed

    @property
    def is_small(self) -> bool:
        """Few rows changed, and only what they concern is computed."""
        changed = sum(facts.changed for facts in self.situation.tables.values())
        return self.step.strategy != "full" and are_few(changed)


_Task = tuple[_Planned, Step]


def _refresh_level(context: Context, level: list[_Target], mode: Mode) -> Counts:
    """Decide for all, then do."""
    due = [one for target in level if (one := _due(context, target, mode)) is not None]
    past = context.runtime.catalog.views.refreshes(*(one.target.part.name for one in due))
    planned = [_planned(context, one, past[one.target.part.name]) for one in due]
    counts = Counts()
    if planned:
        with context.runtime.engine.for_changes(few=all(p.is_small for p in planned)):
            counts = _run_together(context, planned)
    for target in level:
        for parent in target.part.reads:
            note_edge(context, context.tables[parent], context.tables[target.part.name])
    return counts


def _due(context: Context, target: _Target, mode: Mode) -> _Due | None:
    """None if nothing that matters has changed."""
    changed = _changes(context, target)
    if _is_taken_over_partly(context, target) or _is_renewed(context, target):
        mode = "full"
    return _Due(target, changed, mode) if changed or mode == "full" else None


def _planned(context: Context, due: _Due, past: Sequence[RefreshRecord]) -> _Planned:
    situation = _situation(context, due.target, due.changed, past)
    files = {name: change.files for name, change in due.changed.items()}
    return _Planned(due.target, choose(due.target.part, situation, due.mode), situation, files)


def _run_together(context: Context, planned: list[_Planned]) -> Counts:
    """Steps run side by side; what they have in common is computed before."""
    common = run.Common()
    try:
        alone = [p for p in planned if _is_remote(context, p.target.part)]
        shared = [p for p in planned if p not in alone]
        work = [task for group in _of_the_same_changes(shared) for task in _prepared(context, group, common)]
        work += [(p, p.step) for p in alone]  # what they have in common is one question of each
        return _side_by_side(context, work, common)
    finally:
        common.let_go()


def _side_by_side(context: Context, work: list[_Task], common: run.Common) -> Counts:
    """What the driver computes itself comes one after the other: side by side it would take as long, since a look-up
    has threads of its own, and more memory."""
    own: list[_Task] = []
    queues: list[list[_Task]] = []
    for task in work:
        if _is_the_drivers(context, task):
            own.append(task)
        else:
            queues.append([task])
    if own:
        queues.append(own)

    def run_all(queue: list[_Task]) -> Counts:
        return sum((_timed(context, task, common) for task in queue), Counts())

    if len(queues) == 1:
        return run_all(queues[0])
    with ThreadPoolExecutor(SIDE_BY_SIDE, "matview-refresh") as pool:
        return sum(pool.map(run_all, queues), Counts())


def _is_the_drivers(context: Context, task: _Task) -> bool:
    """Not what waits for the answers of sources."""
    planned, step = task
    return step.at_hand and not _is_remote(context, planned.target.part)


def _of_the_same_changes(planned: list[_Planned]) -> list[list[_Planned]]:
    """Views that have come equally far see the same changes of a table; only those can share them."""
    groups: list[tuple[dict[str, tuple[DataFile, ...]], list[_Planned]]] = []
    for one in planned:
        for files, group in groups:
            if all(files.get(name, found) == found for name, found in one.changed.items()):
                files.update(one.changed)
                group.append(one)
                break
        else:
            groups.append((dict(one.changed), [one]))
    return [group for _, group in groups]


def _prepared(context: Context, group: list[_Planned], common: run.Common) -> list[_Task]:
    """The steps of a group, over relations that are computed here, once for all of them."""
    taking, apart = _having_in_common(context, group)
    alike = _alike(context, taking) if len(taking) > 1 else taking
    shared = share([p.step.node for p in alike], prefix=f"__shared_{len(common)}")
    files = {name: found for p in alike for name, found in p.changed.items()}
    for name, node in shared.first:
        common.add(name, context, node, files)
    return [
        *((p, p.step.over(node)) for p, node in zip(alike, shared.nodes, strict=True)),
        *((p, p.step) for p in apart),
    ]


def _having_in_common(context: Context, group: list[_Planned]) -> tuple[list[_Planned], list[_Planned]]:
    """Those that would share something if they read the same columns, and the others, which need not read more."""
    if len(group) == 1:
        return group, []
    shared = share([p.step.node for p in _alike(context, group)])
    taking = [shared.takes_part(node) for node in shared.nodes]
    return list(compress(group, taking)), [p for p, takes in zip(group, taking, strict=True) if not takes]


def _alike(context: Context, planned: list[_Planned]) -> list[_Planned]:
    """The same steps over parts that read the same columns of the same tables."""
    names = {name for p in planned for name in p.target.part.reads if not name.startswith(RESERVED_PREFIX)}
    schemas = {name: context.lookup.schema(named_table(name)) for name in names}
    wide = widened([p.target.part for p in planned], schemas)
    return [replace(p, step=choose(part, p.situation, p.step.strategy)) for p, part in zip(planned, wide, strict=True)]


def _timed(context: Context, task: _Task, common: run.Common) -> Counts:
    planned, step = task
    target, began = planned.target, time.perf_counter()
    assert target.working.view is not None
    with blamed(target.view, target.working.view.maintain):
        counts = _run(context, step, target, planned.changed, common)
    seconds = time.perf_counter() - began
    name = target.part.name
    estimated = planned.step.estimated if context.definitions.is_warm(name, step.strategy) else 0.0
    record = RefreshRecord(name, context.version, step.strategy, estimated, seconds, counts.total, at_hand=step.at_hand)
    context.notes.refreshes.append(record)
    return counts


def _run(context: Context, step: Step, target: _Target, changed: run.Changed, common: run.Common) -> Counts:
    match step.action:
        case Apply():
            return run.applied(context, target.working, step.action, changed, common, step.rows)
        case Merge():
            return run.merged(context, target.working, step.action, changed, common, step.rows)
        case Rebuild():
            return run.rebuilt(context, target.working, target.part, step.rows)


# what changed ---------------------------------------------------------------------------------------------------------


def _changes(context: Context, target: _Target) -> dict[str, Pending]:
    """The tables whose changes matter to a part."""
    columns = target.part.columns_read
    found = {}
    for parent in target.part.reads:
        change = pending(_entries(context, context.tables[parent], target.working))
        if change.matters(columns.get(parent)):
            found[parent] = change
    return found


def _entries(context: Context, parent: Working, child: Working) -> Iterator[LogEntry]:
    """What was committed since the child looked, and what this transaction has staged."""
    ids = (parent.table.id, child.table.id)
    edge = context.tables.edges.get(ids)
    if ids not in context.notes.seen and edge is not None and context.tables.fresh.is_waiting(edge):
        yield from context.runtime.catalog.views.log(edge.parent_id, edge.consumed)
    if parent.staged and context.notes.seen.get(ids) != parent.statements:
        yield parent.log_entry()


def _is_taken_over_partly(context: Context, target: _Target) -> bool:
    """Within one transaction a table's changes are told as one: a part of them cannot be taken away again."""
    parents = [context.tables[parent] for parent in target.part.reads]
    child = target.working.table.id
    seen = [(context.notes.seen.get((p.table.id, child)), p.statements) for p in parents]
    return any(then not in (None, 0, now) for then, now in seen)


def _is_renewed(context: Context, target: _Target) -> bool:
    """Something that it reads goes on from a state that its changes do not lead to."""
    return any(is_anew(context, context.tables[parent], target.working) for parent in target.part.reads)


def _situation(
    context: Context, target: _Target, changed: dict[str, Pending], past: Sequence[RefreshRecord]
) -> Situation:
    assert target.working.view is not None
    tables = {name: _facts(context.tables[name], changed.get(name)) for name in target.part.reads}
    policy = with_remote(target.working.view.policy, remote=_is_remote(context, target.part))
    return Situation(tables, _facts(target.working, None), policy, past)


def _is_remote(context: Context, part: Part) -> bool:
    return any(name in context.remote.sites for name in part.reads)


def _facts(working: Working, change: Pending | None) -> TableFacts:
    files = working.current.files
    size = TableFacts(sum(f.rows for f in files), sum(f.size for f in files))
    if working.table.remote is not None:
        size = staying(working.table.expected_rows)
    return size if change is None else change.beside(size)
