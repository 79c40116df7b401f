"""ADD(Q) and DEL(Q) of paper M, Figure 2: as text with their site labels, and run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.delta.harness import Duck, after, bag, weighed
from tests.queries.tables import TABLES, schema_of, world

from matview.algebra.nodes import Node, tables
from matview.algebra.passes import normalised
from matview.delta.paper import Sites, add, delete, formula
from matview.sql.lower import lower
from matview.sql.parse import parse_one

FIXTURES = [
    tuple(part.strip() for part in text.split(";"))
    for text in Path(__file__).with_name("fixtures").joinpath("paper.txt").read_text().split("\n\n")
]
SITES = Sites((("orders", "e"), ("customers", "f"), ("items", "e"), ("visits", "g")))


def node_of(text: str) -> Node:
    return normalised(lower(parse_one(text).query, schema_of))


@pytest.mark.conforms("M3")
@pytest.mark.parametrize(("text", "added", "deleted"), FIXTURES)
def test_as_text(text: str, added: str, deleted: str) -> None:
    node = node_of(text)
    assert formula(node, "ADD", tables(node), SITES) == added
    assert formula(node, "DEL", tables(node), SITES) == deleted


def test_a_source_called_as_the_warehouse_stands_in_quotes() -> None:
    node = node_of("SELECT o.id, v.n FROM orders o JOIN visits v ON o.city = v.city")
    told = formula(node, "ADD", ["visits"], Sites((("orders", "dw"),)))
    assert told == "Π[id, n]((ordersᵒ ⋈`dw` Δvisits))"


@pytest.mark.conforms("M2", "M3", "M15")
@pytest.mark.parametrize("text", [text for text, _, _ in FIXTURES])
def test_run(text: str) -> None:
    """MV' = (MV - DEL) + ADD."""
    duck = Duck({name: {c.name: c.type for c in schema.columns} for name, schema in TABLES.items()})
    node = node_of(text)
    for seed in range(6):
        made = world(seed)
        duck.load(made.before)
        old = duck.bag(node)
        duck.load({table: after(list(made.before[table]), signed) for table, signed in made.change.items()})
        duck.load({f"Δ{table}": weighed(signed) for table, signed in made.change.items()})
        gone, come = delete(node, made.change), add(node, made.change)
        left = old - (duck.bag(gone) if gone else bag([]))
        assert left + (duck.bag(come) if come else bag([])) == duck.bag(node)
        assert gone is None or not duck.bag(gone) - old, "what goes was there"
