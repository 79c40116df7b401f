"""Every rule, and all of them nested: random queries, tables and changes, held against a recompute."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.algebra.fuzzing import EXAMPLES
from tests.algebra.strategies import TABLES, Data, Row, Table, data, nodes, rows

from matview.algebra.nodes import Node

from .harness import Duck, Signed, law

Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def changes(draw: Draw, before: Data) -> dict[str, Signed]:
    """How some of the tables change: none of a table, some, or everything; not net."""
    chosen: Collection[str] = draw(st.sets(st.sampled_from(sorted(TABLES)), min_size=1))
    return {name: draw(_signed(TABLES[name], before[name])) for name in sorted(chosen)}


@st.composite
def _signed(draw: Draw, table: Table, before: list[Row]) -> Signed:
    gone = draw(st.sampled_from([[], before, None]))
    if gone is None:
        gone = [row for row in before if draw(st.booleans())]
    come = _legal(table, [row for row in before if row not in gone], draw(st.one_of(st.just([]), rows(table, 3))))
    passing = draw(st.lists(st.sampled_from([*before, *come]), max_size=2)) if before or come else []
    noise = [(weight, row) for row in passing for weight in (1, -1)]
    signed: Signed = draw(st.permutations([*((-1, row) for row in gone), *((1, row) for row in come), *noise]))
    return signed


def _legal(table: Table, left: list[Row], come: list[Row]) -> list[Row]:
    """Those of the new rows whose keys are free."""
    at = [i for i, f in enumerate(table.fields) if f.name in table.key]
    taken = {tuple(row[i] for i in at) for row in left}
    return [row for row in come if not at or tuple(row[i] for i in at) not in taken]


@pytest.fixture(scope="module")
def duck() -> Duck:
    return Duck({table.name: {f.name: f.type for f in table.fields} for table in TABLES.values()})


@pytest.mark.conforms("M2", "M15", "M16")
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(node=nodes(), before=data(), drawn=st.data())
def test_the_new_result_is_the_old_one_and_the_change(
    duck: Duck, node: Node, before: Data, drawn: st.DataObject
) -> None:
    law(duck, node, before, drawn.draw(changes(before)))
