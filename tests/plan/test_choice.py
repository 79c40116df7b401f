"""Which strategy is chosen: what the driver computes from few rows is cheap, unless it had to read a large table."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from matview.algebra.nodes import Change, Join, Node, Scan, TopK, UnionAll
from matview.algebra.passes import normalised
from matview.algebra.schema import Column, Field, Schema
from matview.local.reach import SMALL_TABLE, is_led
from matview.plan.choice import Situation, candidates, choose
from matview.plan.cost import TableFacts
from matview.plan.definition import Part, parts_of
from matview.sql.lower import lower
from matview.sql.parse import parse_one
from matview.sql.statements import Query

SCHEMAS = {
    "scores": Schema((Column("id", "int", False), Column("v", "int"), Column("g", "int")), ("id",)),
    "names": Schema((Column("g", "int", False), Column("name", "string")), ("g",)),
}
FEW = frozenset({"v"})


def view(text: str) -> Part:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    (part,) = parts_of("best", normalised(lower(statement.query, lambda t: SCHEMAS[t.name])), lambda node: node.fields)
    return part


def situation(changed: int, stored: int, rows: int = 10_000_000) -> Situation:
    scores = TableFacts(rows, 100 * rows, changed, only_inserts=False, updated=FEW)
    return Situation({"scores": scores, "names": TableFacts(rows, 100 * rows)}, TableFacts(stored, 100 * stored))


TOP = "SELECT id, v FROM scores ORDER BY v DESC, id LIMIT 100"
JOINED = "SELECT id, v, name FROM scores JOIN names ON scores.g = names.g"


def test_the_top_follows_from_what_is_held() -> None:
    """Sorting the whole table anew writes few rows, too: that does not make it cheap."""
    chosen = choose(view(TOP), situation(changed=1000, stored=100))
    assert (chosen.strategy, chosen.at_hand) == ("delta", True)


@pytest.mark.parametrize(("text", "at_hand"), [(TOP, {"delta"}), (JOINED, {"delta", "affected"})])
def test_a_large_table_that_nothing_restricts_is_for_spark(text: str, at_hand: set[str]) -> None:
    found = {step.strategy: step.at_hand for step in candidates(view(text), situation(changed=1000, stored=100))}
    assert {strategy for strategy, here in found.items() if here} == at_hand & found.keys()


def test_many_changes_are_for_spark() -> None:
    assert not any(step.at_hand for step in candidates(view(JOINED), situation(changed=1_000_000, stored=10_000_000)))
    assert choose(view(JOINED), situation(changed=9_000_000, stored=10_000_000)).strategy == "full"


SUMMED = "SELECT g, sum(v) AS total, count(*) AS n FROM scores GROUP BY g"


@pytest.mark.conforms("C13")
@pytest.mark.parametrize("text", [JOINED, SUMMED])
def test_there_is_one_crossover(text: str) -> None:
    """From changes while they are few, anew from some share on."""
    rows = 10_000_000
    shares = [10**-6, 10**-4, 0.01, *(n / 20 for n in range(1, 20))]
    chosen = [choose(view(text), situation(int(rows * share), rows)).strategy for share in shares]
    before = chosen.index("full")
    assert set(chosen[:before]) == {"delta"} and before >= 3
    assert set(chosen[before:]) == {"full"}


def scan(table: str) -> Scan:
    return Scan(table, ("a",), (Field(f"{table}.a", "int"),))


def test_what_leads_where() -> None:
    large, small, moved = scan("large"), scan("small"), Change(scan("large"))
    sizes = {"large": SMALL_TABLE + 1, "larger": 10**9, "small": SMALL_TABLE}.__getitem__
    assert is_led(moved, sizes) and is_led(small, sizes) and not is_led(large, sizes)
    assert is_led(Join((large, small)), sizes) and not is_led(Join((large, scan("larger"))), sizes)
    assert not is_led(TopK(large, (), 10), sizes)


def test_each_part_is_looked_at_once() -> None:
    """One that stands in both places of each of sixty unions would be looked at 2 to the power of sixty times."""
    node: Node = scan("small")
    for _ in range(60):
        node = UnionAll((node, node))
    assert is_led(node, lambda _: 1)


@dataclass(frozen=True)
class Took:
    strategy: str
    seconds: float
    at_hand: bool = True
    estimated: float = 1.0


def costs(*past: Took) -> dict[str, float]:
    plain = situation(changed=1000, stored=10_000_000)
    return {step.strategy: step.cost for step in candidates(view(JOINED), replace(plain, past=past))}


def test_what_others_took_tells_of_a_strategy_that_was_not_tried_only_if_it_was_longer() -> None:
    """A slow machine is slow for all; that rows were quickly at hand does not make it cheap to compute everything."""
    before = costs(*[Took("delta", 1.0)] * 5)
    assert costs(*[Took("delta", 0.25)] * 5) == pytest.approx(before | {"delta": before["delta"] / 4})
    assert costs(*[Took("delta", 3.0)] * 5) == pytest.approx({strategy: 3 * cost for strategy, cost in before.items()})


def test_what_the_driver_took_tells_nothing_of_spark() -> None:
    before, by_spark = costs(), [Took("delta", 4.0, at_hand=False)] * 5
    assert costs(*[Took("delta", 0.5)] * 5, *by_spark)["delta"] == pytest.approx(before["delta"] / 2)
    assert costs(*[Took("full", 0.5, at_hand=False)] * 5)["delta"] == pytest.approx(before["delta"])


def test_what_is_corrected_is_the_estimate() -> None:
    """Were the corrected one corrected again, it would swing between right and wrong."""
    told = replace(situation(changed=1000, stored=10_000_000), past=[Took("delta", 0.25)] * 5)
    (step,) = (step for step in candidates(view(JOINED), told) if step.strategy == "delta")
    assert (step.estimated, step.cost) == pytest.approx((costs()["delta"], costs()["delta"] / 4))
