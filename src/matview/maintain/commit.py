"""The parts of a commit: what the catalog is told, what the tables get, and how that is taken back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from matview.catalog.records import CatalogChanges, GarbageFile, GroupChanges, Lease
from matview.maintain.change.working import Working
from matview.maintain.context import Notes
from matview.maintain.upkeep.recovery import remove_uncommitted
from matview.storage.runtime import Runtime

Step = Callable[[str], None]
"""Hears of every step of a transaction."""
SIDE_BY_SIDE = 4
"""Commits at a time: each waits for the storage, and is written by code that does not hold Python's lock."""


def touched(tables: Iterable[Working]) -> list[Working]:
    """Those that have changed, are new, or go; not those that came and went: nobody will ever have seen them."""
    return [w for w in tables if not _came_and_went(w) and (w.staged or w.created or w.dropped)]


def _came_and_went(working: Working) -> bool:
    return working.created is not None and working.dropped


def catalog_changes(tables: Collection[Working], notes: Notes, groups: GroupChanges) -> CatalogChanges:
    """All that the catalog takes over in the step that moves currentVN."""
    every = [working for working in tables if not _came_and_went(working)]
    never = {working.table.id for working in tables if _came_and_went(working)}
    found = touched(every)
    last = sorted(found, key=lambda w: not w.dropped)  # a table that takes the place of another has its name
    per_table = {w.table.name: [w.counts.inserted, w.counts.updated, w.counts.deleted] for w in last}
    dropped = tuple(GarbageFile(w.table.id, f.path) for w in found if w.dropped for f in w.current.files)
    return CatalogChanges(
        created=tuple(w.created for w in found if w.created),
        dropped=tuple(w.table.id for w in found if w.dropped),
        next_rid={w.table.id: w.next_rid for w in found if w.next_rid != w.first_rid},
        garbage=(*_replaced(every), *dropped, *_told(found)),
        views=tuple(v for v in notes.views.values() if v.table_id not in never),
        edges=tuple(e for e in notes.edges.values() if not {e.parent_id, e.child_id} & never),
        log=tuple(w.log_entry() for w in found if w.logged and w.staged and not w.dropped),
        refreshes=tuple(notes.refreshes),
        groups=groups,
        sources=notes.sources,
        changed=any(w.staged and w.view is None for w in found),
        defined=notes.defined > 0,
        summary={"tables": per_table, "rows": sum(w.counts.total for w in every)},
    )


def commit_tables(runtime: Runtime, lease: Lease, staying: Sequence[Working], step: Step) -> None:
    """The journal, then a Delta commit per table, in any order: it takes all of them, or none is seen.

    Whatever fails is raised when no commit is under way any more, and what follows takes back those that came about.
    (Whoever is interrupted while waiting for that may meet one that is: it fails, or he does, by compare-and-swap.)
    """
    runtime.catalog.transactions.journal(lease, [w.table.id for w in staying if not w.created])
    step("journaled")
    with ThreadPoolExecutor(SIDE_BY_SIDE, "matview-commit") as pool:
        for working in pool.map(partial(_commit_table, lease), staying):
            step(f"table {working.table.name}")


def _commit_table(lease: Lease, working: Working) -> Working:
    log = working.table.log
    if working.created:
        log.create(lease.token)
        working.snapshot = log.load()
    if working.staged and working.table.remote is None:
        log.commit(working.snapshot, lease.token, working.staged, ())
    return working


def left_behind(tables: Iterable[Working]) -> tuple[GarbageFile, ...]:
    """The files that nobody will refer to when the transaction is undone."""
    every = list(tables)
    staged = (GarbageFile(w.table.id, f.path) for w in every if not w.created for f in w.staged)
    return (*_replaced(every), *staged)


def take_back(runtime: Runtime, lease: Lease, tables: Iterable[Working], version: int) -> None:
    """What was added to tables is taken out again: they are as `version` left them."""
    every = list(tables)
    runtime.catalog.transactions.housekeeping(lease, left_behind(every))
    for working in every:
        if working.staged and not working.created:
            remove_uncommitted(working.table, lease.token, version)


def _told(tables: Iterable[Working]) -> list[GarbageFile]:
    """The changes of tables that stay at their sources: no table has these files, only logs."""
    return [GarbageFile(w.table.id, f.path) for w in tables if w.table.remote is not None for f in w.staged]


def _replaced(tables: Iterable[Working]) -> list[GarbageFile]:
    return [GarbageFile(w.table.id, f.path) for w in tables for f in w.replaced]
