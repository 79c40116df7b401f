"""The first state is read beside writers, with no gap and no overlap."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.sources.contract.common import (
    Fixtures,
    captured_from_here,
    consume,
    now,
    read,
)
from tests.sources.history import writers
from tests.sources.lab import Lab, Row, bag
from tests.waiting import wait_until

from matview.sources.engine import Source
from matview.sources.types import arrow_schema


class FirstStates(Fixtures):
    def test_the_first_state_of_an_empty_table(self, lab: Lab, source: Source) -> None:
        lab.execute("CREATE TABLE no_rows (id INTEGER PRIMARY KEY)")
        tables = captured_from_here(source, "no_rows")
        with source.first_state(tables) as state:
            assert read(state, tables[0]) == Counter()

    def test_the_first_state_in_slices(self, lab: Lab, source: Source, heap) -> None:
        for _ in range(9):
            lab.execute("INSERT INTO heap SELECT id, city, amount FROM heap")
        with source.first_state(heap) as state, ThreadPoolExecutor(3) as pool:
            parts = state.slices(heap[0], 300)
            got = list(pool.map(lambda part: list(state.read(part)), parts))
        assert len(parts) > 1 or not lab.slices_heaps
        assert sum((bag(batches) for batches in got), Counter[Row]()) == now(lab, "heap")
        schemas = {batch.schema for batches in got for batch in batches}
        assert schemas == {arrow_schema(heap[0])}

    def test_about_how_many_rows_there_are(self, lab: Lab, source: Source) -> None:
        """Whatever the key: keys that are far apart do not make many rows of few, nor a key of texts none of many."""
        lab.execute("CREATE TABLE sparse (id BIGINT PRIMARY KEY)", "INSERT INTO sparse VALUES (1), (1000000000)")
        lab.execute("CREATE TABLE named (name VARCHAR(9) NOT NULL PRIMARY KEY)")
        lab.together(*(f"INSERT INTO named VALUES ('n{number}')" for number in range(500)))
        lab.execute(*(lab.analyze.format(table=name) for name in ("sparse", "named")))
        tables = captured_from_here(source, "sparse", "named")
        with source.first_state(tables) as state:
            few, many = (sum(part.rows for part in state.slices(table, 1000)) for table in tables)
        assert few <= 500 and 250 <= many <= 1000

    @pytest.mark.conforms("M6")
    @pytest.mark.parametrize("seed", [1, 2])
    def test_first_state_and_changes_make_the_table_beside_writers(
        self, lab: Lab, source: Source, stock, heap, seed: int
    ) -> None:
        tables = [*stock, *heap]
        busy = [("stock", True), ("heap", False), ("stock", True)]
        with writers(lab, busy, seed) as done:
            wait_until(lambda: len(done) > 5)
            with source.first_state(tables) as state:
                seen = {t.name: read(state, t) for t in tables}
                after = len(done)
                wait_until(lambda: len(done) > after + 5)
            source.acknowledge(tables, state.taken)
            for _ in range(3):
                after = len(done)
                wait_until(lambda: len(done) > after + 5)  # noqa: B023
                consume(source, tables, seen)
        consume(source, tables, seen)
        assert seen == {t.name: now(lab, t.name) for t in tables}
