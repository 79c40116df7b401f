"""SQLite keeps to the contract of sources, with a rollback journal and with a write-ahead log."""

from __future__ import annotations

from tests.sources.contract import Contract

from matview.sources import Source


class TestContract(Contract):
    def test_a_table_is_described_with_the_spark_types_that_carry_it(self, source: Source, stock) -> None:
        (table,) = stock
        assert [(c.name, c.type) for c in table.columns] == [
            ("id", "bigint"),
            ("city", "string"),
            ("amount", "decimal(12,2)"),
        ]
        assert (table.key, table.name) == (("id",), "stock")
        assert table.identity
        assert "stock" in source.tables()
