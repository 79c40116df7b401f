"""Makes a failing case smaller as long as it fails in the same way: fewer changes, fewer rows, a simpler query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import sqlglot
from sqlglot import exp

from .cases import Loaded
from .tables import World
from .trying import Failure, failing

Fails = Callable[[str, World], bool]


def shrunk(failure: Failure, seconds: float = 20.0) -> Failure:
    """The smallest case found within so much computing time."""
    loaded, until = Loaded(), time.process_time() + seconds
    sign = _sign(failing(loaded, failure.sql, failure.world))
    if sign is None:
        return failure

    def fails(sql: str, world: World) -> bool:
        return time.process_time() < until and _sign(failing(loaded, sql, world)) == sign

    world = smaller_world(failure.sql, failure.world, fails)
    sql = simpler_query(failure.sql, world, fails)
    world = smaller_world(sql, world, fails)
    _, what = failing(loaded, sql, world) or ("", failure.what)
    return replace(failure, sql=sql, world=world, what=what)


def _sign(found: tuple[str, str] | None) -> str | None:
    """What makes two failures the same: the law; for other errors their first words too."""
    if found is None:
        return None
    law, what = found
    return law if law.islower() else f"{law}: {what[:25]}"


# worlds ---------------------------------------------------------------------------------------------------------------


def smaller_world(sql: str, world: World, fails: Fails) -> World:
    for cuts in (_without_tables, _without_changes, _without_rows):
        tried = 0
        while (smaller := next(islice(cuts(world), tried, None), None)) is not None:
            if fails(sql, smaller):
                world = smaller
            else:
                tried += 1
    return world


def _without_tables(world: World) -> Iterator[World]:
    """A table is empty, or does not change."""
    for table, rows in world.before.items():
        still = world.only(world.change.keys() - {table})
        if rows:
            yield replace(still, before={**world.before, table: []})
        if table in world.change:
            yield still


def _without_changes(world: World) -> Iterator[World]:
    for table, signed in world.change.items():
        for i in range(len(signed)):
            yield replace(world, change={**world.change, table: [*signed[:i], *signed[i + 1 :]]})


def _without_rows(world: World) -> Iterator[World]:
    """A row was never there; nor did it go, then."""
    for table, rows in world.before.items():
        for i, row in enumerate(rows):
            before = {**world.before, table: [*rows[:i], *rows[i + 1 :]]}
            signed = world.change.get(table, [])
            if (-1, row) not in signed:
                yield World(before, world.change)
                continue
            at = signed.index((-1, row))
            yield World(before, {**world.change, table: [*signed[:at], *signed[at + 1 :]]})


# queries --------------------------------------------------------------------------------------------------------------


def simpler_query(sql: str, world: World, fails: Fails) -> str:
    found = True
    while found:
        found = False
        for simpler in sorted({made for made in _queries(sql) if len(made) < len(sql)}, key=len):
            if fails(simpler, world):
                sql, found = simpler, True
                break
    return sql


def _queries(sql: str) -> Iterator[str]:
    """The query with something left out, or a part of it."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    yield tree.sql("spark")
    size = sum(1 for _ in tree.walk())
    for at in range(size):
        for cut in (_without_clauses, _without_items, _only_a_part):
            yield from cut(tree, at)


def _node(tree: exp.Expr, at: int) -> tuple[exp.Expr, exp.Expr]:
    """A copy of the tree, and its node at a position."""
    copy = tree.copy()
    return copy, next(node for i, node in enumerate(copy.walk()) if i == at)


_CLAUSES = ("where", "having", "distinct", "group", "limit", "offset", "joins", "laterals", "filter")


def _without_clauses(tree: exp.Expr, at: int) -> Iterator[str]:
    _, original = _node(tree, at)
    for clause in _CLAUSES:
        if original.args.get(clause):
            copy, node = _node(tree, at)
            if clause in ("joins", "laterals"):
                node.args[clause].pop()
            else:
                node.set(clause, None)
            yield copy.sql("spark")


def _without_items(tree: exp.Expr, at: int) -> Iterator[str]:
    _, original = _node(tree, at)
    if isinstance(original, exp.Select | exp.Group | exp.With):
        for i in range(len(original.expressions)):
            copy, node = _node(tree, at)
            node.expressions.pop(i)
            if node.expressions:
                yield copy.sql("spark")


def _only_a_part(tree: exp.Expr, at: int) -> Iterator[str]:
    """A subquery as the query; one side of AND; an argument in place of a call."""
    copy, node = _node(tree, at)
    if isinstance(node, exp.Query) and node is not copy:
        yield node.sql("spark")
    if isinstance(node, exp.Connector | exp.Func | exp.Binary | exp.Paren | exp.SetOperation) and node is not copy:
        for i in range(len(list(node.iter_expressions()))):
            whole, same = _node(tree, at)
            same.replace(list(same.iter_expressions())[i].copy())
            yield whole.sql("spark")
