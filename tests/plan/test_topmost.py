"""The top k of a view follows from what it holds, as long as enough of that stays on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from tests.local.rows import rows_of, values_of

from matview.algebra.nodes import Change, Scan, Stored
from matview.algebra.passes import normalised
from matview.algebra.schema import Column, Schema
from matview.local.kinds import BIGINT, INT, NotLocal
from matview.local.relations import Rows, Wanted, evaluated
from matview.plan.definition import parts_of
from matview.plan.topmost import top_change
from matview.sql.lower import lower
from matview.sql.parse import parse_one
from matview.sql.statements import Query

SCORES = Schema((Column("id", "int", False), Column("v", "int")), ("id",))
TABLE = {1: 90, 2: 80, 3: 70, 4: 10}
TOP = [(1, 90), (2, 80), (3, 70)]


@dataclass(frozen=True)
class World:
    """The whole table is there only if `whole` says so."""

    moved: Sequence[tuple[int, ...]]
    held: Sequence[tuple[int, int]]
    whole: bool

    def change(self, leaf: Change) -> Rows:
        return rows_of(leaf.names, (INT, INT, BIGINT), self.moved)

    def stored(self, leaf: Stored, wanted: Wanted | None) -> Rows:
        return rows_of(leaf.names, (INT, INT), self.held)

    def scan(self, leaf: Scan, wanted: Wanted | None) -> Rows:
        if not self.whole:
            raise NotLocal("the whole table")
        now = dict(TABLE)
        for id_, value, weight in sorted(self.moved, key=lambda row: row[-1]):
            now = {**now, id_: value} if weight > 0 else {k: v for k, v in now.items() if k != id_}
        return rows_of(leaf.names, (INT, INT), list(now.items()))


def refreshed(world: World) -> list[tuple[object, ...]]:
    """The view afterwards."""
    statement = parse_one("SELECT id, v FROM scores ORDER BY v DESC, id LIMIT 3")
    assert isinstance(statement, Query)
    node = normalised(lower(statement.query, lambda _: SCORES))
    (part,) = parts_of("v", node, lambda node: node.fields)
    moved = top_change(part, {"scores"})
    assert moved is not None
    net: dict[tuple[object, ...], int] = dict.fromkeys(world.held, 1)
    for *row, weight in values_of(evaluated(moved, world)):
        net[tuple(row)] = net.get(tuple(row), 0) + int(str(weight))
    assert set(net.values()) <= {0, 1}
    return sorted((row for row, weight in net.items() if weight), key=lambda row: -int(str(row[1])))


ENOUGH = {
    "one rises": ([(2, 80, -1), (2, 95, 1)], [(2, 95), (1, 90), (3, 70)]),
    "one falls, and stays": ([(1, 90, -1), (1, 75, 1)], [(2, 80), (1, 75), (3, 70)]),
    "one comes": ([(9, 85, 1)], [(1, 90), (9, 85), (2, 80)]),
    "one goes, a better one comes": ([(1, 90, -1), (9, 72, 1)], [(2, 80), (9, 72), (3, 70)]),
    "the last one's equal": ([(3, 70, -1), (3, 70, 1)], TOP),
    "far behind": ([(4, 10, -1), (4, 12, 1)], TOP),
}
TOO_FEW = {
    "one goes": ([(2, 80, -1)], [(1, 90), (3, 70), (4, 10)]),
    "one falls behind": ([(1, 90, -1), (1, 5, 1)], [(2, 80), (3, 70), (4, 10)]),
    "the last one falls": ([(3, 70, -1), (3, 69, 1)], [(1, 90), (2, 80), (3, 69)]),
}


@pytest.mark.parametrize("name", ENOUGH)
def test_from_what_is_held(name: str) -> None:
    moved, expected = ENOUGH[name]
    assert refreshed(World(moved, TOP, whole=False)) == expected


@pytest.mark.parametrize("name", TOO_FEW)
def test_the_whole_is_read(name: str) -> None:
    moved, expected = TOO_FEW[name]
    with pytest.raises(NotLocal, match="whole"):
        refreshed(World(moved, TOP, whole=False))
    assert refreshed(World(moved, TOP, whole=True)) == expected


def test_fewer_than_k_are_all_there_are() -> None:
    assert refreshed(World([(1, 90, -1)], TOP[:2], whole=False)) == [(2, 80)]
