"""What statements change is captured, each row as often; what is rolled back is not."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.sources.contract.common import (
    STATEMENTS,
    Fixtures,
    now,
)
from tests.sources.lab import Lab, net, plus

from matview.sources.engine import WEIGHT, Source
from matview.sources.types import arrow_schema


class Statements(Fixtures):
    @pytest.mark.conforms("M1", "M2")
    @pytest.mark.parametrize("what", STATEMENTS)
    @pytest.mark.parametrize("one_transaction", [True, False])
    def test_what_statements_change_is_captured(
        self, lab: Lab, source: Source, stock, what: str, one_transaction: bool
    ) -> None:
        before = now(lab, "stock")
        (lab.together if one_transaction else lab.execute)(*STATEMENTS[what])
        captured = source.capture(stock)
        assert plus(before, net(captured, table="stock")) == now(lab, "stock")
        assert json.loads(json.dumps(captured.taken)) == captured.taken
        assert captured.rows == sum(changes.num_rows for changes in captured.changes.values())

    @pytest.mark.conforms("M2")
    def test_changes_come_in_the_arrow_types_of_the_spark_types(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (7, 'Hå', 0.10)", "DELETE FROM stock WHERE id = 7")
        changes = source.capture(stock).changes["stock"]
        assert changes.schema.equals(arrow_schema(stock[0]).append(pa.field(WEIGHT, pa.int64(), nullable=False)))
        assert (
            changes.to_pylist()
            == [
                {"id": 7, "city": "Hå", "amount": Decimal("0.10"), WEIGHT: 1},
                {"id": 7, "city": "Hå", "amount": Decimal("0.10"), WEIGHT: -1},
            ]
            or net(source.capture(stock), table="stock") == Counter()
        )

    @pytest.mark.conforms("M6")
    def test_a_quiet_source_has_nothing(self, source: Source, stock) -> None:
        captured = source.capture(stock)
        assert (captured.rows, captured.transactions, dict(captured.changes)) == (0, 0, {})
        source.acknowledge(stock, captured.taken)

    def test_what_is_rolled_back_is_not_captured(self, lab: Lab, source: Source, stock) -> None:
        writer = lab.writer()
        writer.begin()
        writer.execute("DELETE FROM stock")
        writer.rollback()
        writer.close()
        assert source.capture(stock).rows == 0

    def test_back_to_a_savepoint(self, lab: Lab, source: Source, stock) -> None:
        before = now(lab, "stock")
        lab.together(
            "INSERT INTO stock VALUES (20, 'kept', 1)",
            "SAVEPOINT inner_one",
            "DELETE FROM stock",
            "INSERT INTO stock VALUES (21, 'lost', 1)",
            "ROLLBACK TO SAVEPOINT inner_one",
            "INSERT INTO stock VALUES (22, 'kept', 1)",
            "RELEASE SAVEPOINT inner_one",
        )
        assert plus(before, net(source.capture(stock), table="stock")) == now(lab, "stock")

    def test_an_open_transaction_is_not_captured(self, lab: Lab, source: Source, stock) -> None:
        if not lab.many_writers:
            pytest.skip("a capture waits for the one writer")
        writer = lab.writer()
        writer.begin()
        writer.execute("INSERT INTO stock VALUES (30, 'open', 1)")
        assert source.capture(stock).rows == 0
        writer.commit()
        writer.close()
        assert source.capture(stock).rows == 1

    @pytest.mark.conforms("M2")
    def test_rows_that_repeat_are_counted(self, lab: Lab, source: Source, heap) -> None:
        before = now(lab, "heap")
        lab.execute(
            "INSERT INTO heap VALUES (1, 'Oslo', 12.50), (2, 'Moss', 1), (2, 'Moss', 1)",
            "UPDATE heap SET city = 'Ås' WHERE id = 2",
            "DELETE FROM heap WHERE id IS NULL",
        )
        change = net(source.capture(heap), table="heap")
        assert change == Counter(
            {
                (1, "Oslo", Decimal("12.50")): 1,
                (2, "Ås", Decimal("1.00")): 2,
                (None, None, None): -2,
            }
        )
        assert plus(before, change) == now(lab, "heap")
