"""Every strategy leaves what computing anew would leave, in the stored columns that users see and in the others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.algebra.fuzzing import EXAMPLES
from tests.plan.maintained import Maintained
from tests.queries.generator import query
from tests.queries.tables import TABLES, world

from matview.errors import NotIncremental

WORLDS = range(max(1, EXAMPLES // 15))
VIEWS = {
    name.strip(): view
    for text in Path(__file__).with_name("views.sql").read_text().split("-- ")[1:]
    for name, view in [text.rstrip().rstrip(";").split("\n", 1)]
}


@pytest.mark.conforms("C6")
@pytest.mark.parametrize("name", VIEWS)
def test_views_by_hand(name: str) -> None:
    maintained = Maintained(VIEWS[name], TABLES)
    for seed in WORLDS:
        made = world(seed)
        maintained.check(made.before, made.change)


@pytest.mark.parametrize("name", ["top", "top rows"])
def test_the_top_of_many_worlds(name: str) -> None:
    """Rows leave the top, come into it, pass by, and there may be fewer of them than are asked for."""
    maintained = Maintained(VIEWS[name], TABLES)
    for seed in range(EXAMPLES // 2):
        made = world(seed, 1)
        maintained.check(made.before, made.change)


def test_every_way_is_taken() -> None:
    """Additive, growing and affected summaries, rows; by delta, affected and full."""
    used: Counter[str] = Counter()
    for name in ("counts and sums", "extremes", "distinct counts", "window"):
        maintained = Maintained(VIEWS[name], TABLES)
        for seed in WORLDS:
            made = world(seed)
            used.update(maintained.check(made.before, made.change))
    assert {"delta additive", "affected additive", "affected growing", "affected affected", "full rows"} <= set(used)
    assert {"delta rows", "affected rows"} <= set(used)


def test_random_views() -> None:
    refused = 0
    for seed in range(EXAMPLES // 4):
        try:
            maintained = Maintained(query(seed, 3), TABLES)
        except NotIncremental:
            refused += 1
            continue
        made = world(seed * 7)
        maintained.check(made.before, made.change)
    assert refused < 4
