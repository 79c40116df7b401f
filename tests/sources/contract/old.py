"""Subqueries in state old: formula (3)."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.sources.contract.common import (
    STATEMENTS,
    Fixtures,
    asked,
    now,
)
from tests.sources.history import writers
from tests.sources.lab import Lab, Row, net, plus
from tests.waiting import wait_until

from matview.sources.engine import NOTHING, WEIGHT, Source, Taken


class StatesOld(Fixtures):
    @pytest.mark.conforms("M5")
    @pytest.mark.parametrize("later", STATEMENTS)
    def test_a_table_in_state_old_while_others_commit(self, lab: Lab, source: Source, stock, later: str) -> None:
        lab.execute("INSERT INTO stock VALUES (5, 'Moss', 3)", "UPDATE stock SET amount = 8 WHERE id = 1")
        captured = source.capture(stock)
        old = now(lab, "stock")
        lab.execute(*STATEMENTS[later])
        query = "SELECT id, city, amount FROM stock"
        assert asked(source, query, stock, captured.taken) == old

    @pytest.mark.conforms("M5")
    def test_rows_that_repeat_in_state_old(self, lab: Lab, source: Source, heap) -> None:
        taken, old = source.capture(heap).taken, now(lab, "heap")
        later = (
            "INSERT INTO heap VALUES (1, 'Oslo', 12.50)",
            "INSERT INTO heap VALUES (NULL, NULL, NULL), (4, 'x', 1), (4, 'x', 1)",
            "DELETE FROM heap WHERE id = 1",
            "INSERT INTO heap VALUES (1, 'Oslo', 12.50)",
            "UPDATE heap SET city = 'all the same', amount = 0, id = 0",
        )
        for statement in later:
            lab.execute(statement)
            assert asked(source, "SELECT id, city, amount FROM heap", heap, taken) == old

    @pytest.mark.conforms("M4", "M5")
    def test_joins_changes_and_shipped_relations(self, lab: Lab, source: Source, stock, heap) -> None:
        tables = [*stock, *heap]
        lab.together("UPDATE stock SET amount = 2 WHERE id = 1", "INSERT INTO heap VALUES (3, 'new', 1)")
        taken = source.capture(tables).taken
        lab.execute("DELETE FROM stock", "DELETE FROM heap WHERE id = 1", "INSERT INTO heap VALUES (2, 'after', 1)")
        shipped = {
            "there": pa.table(
                {
                    "id": pa.array([1, 1, 3, None], pa.int32()),
                    "name": ["a", "b", None, "'; DROP TABLE stock; --"],
                    "factor": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("0.01")], pa.decimal128(9, 2)),
                }
            )
        }
        joined_all = (
            "SELECT s.id, h.city, t.name, t.factor FROM stock AS s JOIN heap AS h ON s.id = h.id "
            "JOIN there AS t ON t.id = s.id WHERE s.amount > 1 OR s.amount IS NULL"
        )
        assert asked(source, joined_all, tables, taken, shipped) == Counter(
            {
                (1, "Oslo", "a", Decimal("1.50")): 2,
                (1, "Oslo", "b", Decimal("2.00")): 2,
                (3, "new", None, None): 1,
            }
        )
        changed = (
            f"SELECT d.id, d.amount, d.{WEIGHT} FROM `Δstock` AS d JOIN there AS t ON t.id = d.id WHERE t.name = 'b'"
        )
        assert asked(source, changed, tables, taken, shipped) == Counter(
            {(1, Decimal("12.50"), -1): 1, (1, Decimal("2.00"), 1): 1}
        )
        assert asked(source, "SELECT name FROM there WHERE id IS NULL", tables, taken, shipped) == Counter(
            {("'; DROP TABLE stock; --",): 1}
        )

    @pytest.mark.conforms("M5", "M18")
    def test_a_set_beside_one_that_is_installed_and_not_acknowledged(self, lab: Lab, source: Source, stock, heap):
        """Before a round, in it and after it, acknowledged or not; what commits later is in none of the answers."""
        tables = [*stock, *heap]
        queries = {table.name: f"SELECT id, city, amount FROM {table.name}" for table in tables}

        def state(taken: Taken, *besides: Taken) -> dict[str, Counter[Row]]:
            return {name: asked(source, query, tables, taken, besides=besides) for name, query in queries.items()}

        def current() -> dict[str, Counter[Row]]:
            return {name: now(lab, name) for name in queries}

        before = current()
        lab.together("UPDATE stock SET amount = 2 WHERE id = 1", "INSERT INTO heap VALUES (1, 'Oslo', 12.50)")
        first, after_first = source.capture(tables).taken, current()
        lab.together("DELETE FROM stock WHERE id = 1", "DELETE FROM heap WHERE id = 1")
        second, after_second = source.capture(tables, besides=[first]).taken, current()
        lab.execute("INSERT INTO stock VALUES (1, 'later', 1)", "INSERT INTO heap VALUES (1, 'Oslo', 12.50)")
        changed = f"SELECT id, amount, {WEIGHT} FROM `Δstock`"
        for acknowledged in (False, True):
            if acknowledged:
                source.acknowledge(tables, first)
            else:
                assert state(NOTHING) == before
            assert state(NOTHING, first) == after_first
            assert state(second, first) == after_second
            assert state(NOTHING, first, second) == after_second
            told = asked(source, changed, tables, second, besides=[first])
            assert told == Counter({(1, Decimal("2.00"), -1): 1})
            assert asked(source, changed, tables, NOTHING, besides=[first]) == Counter()
        source.acknowledge(tables, second)
        assert state(NOTHING, second) == state(NOTHING) == after_second

    def test_several_answers_in_one(self, source: Source, stock, heap) -> None:
        """What one answer has and another has not is null; three of them, since databases look at two at a time."""
        query = (
            "SELECT 0 AS n, id AS a, CAST(NULL AS STRING) AS b, CAST(NULL AS DECIMAL(12,2)) AS c FROM stock "
            "UNION ALL SELECT 1, CAST(NULL AS INT), CAST(NULL AS STRING), amount FROM heap "
            "UNION ALL SELECT 2, CAST(NULL AS INT), city, CAST(NULL AS DECIMAL(12,2)) FROM stock"
        )
        found = asked(source, query, [*stock, *heap], source.capture([*stock, *heap]).taken)
        numbers = Counter({(0, n, None, None): 1 for n in (1, 2, 3)})
        amounts = Counter({(1, None, None, Decimal("12.50")): 2, (1, None, None, None): 2})
        cities = Counter({(2, None, city, None): 1 for city in ("Oslo", "Bergen", None)})
        assert found == numbers + amounts + cities

    @pytest.mark.conforms("M5")
    @pytest.mark.parametrize("seed", [1, 2])
    def test_state_old_beside_writers(self, lab: Lab, source: Source, stock, heap, seed: int) -> None:
        tables = [*stock, *heap]
        seen = {t.name: now(lab, t.name) for t in tables}
        with writers(lab, [("stock", True), ("heap", False)], seed) as done:
            for _ in range(4):
                after = len(done)
                wait_until(lambda: len(done) > after + 4)  # noqa: B023
                captured = source.capture(tables)
                for table in tables:
                    seen[table.name] = plus(seen[table.name], net(captured, table=table.name))
                    query = f"SELECT id, city, amount FROM {table.name}"
                    assert asked(source, query, tables, captured.taken) == seen[table.name]
                source.acknowledge(tables, captured.taken)
