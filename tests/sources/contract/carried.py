"""Names and values come through as they are."""

from __future__ import annotations

from collections import Counter

import pytest
import sqlglot
from sqlglot import exp
from tests.sources.contract.common import (
    Fixtures,
    captured_from_here,
)
from tests.sources.lab import Lab, bag, hashable, net

from matview.errors import SourceTableUnknown, TypeNotCarried
from matview.sources.engine import Source
from matview.sources.names import joined


class Carried(Fixtures):
    def test_a_table_is_described_with_the_spark_types_that_carry_it(self, source: Source, stock) -> None:
        (table,) = stock
        assert [(c.name, c.type) for c in table.columns] == [
            ("id", "int"),
            ("city", "string"),
            ("amount", "decimal(12,2)"),
        ]
        assert table.key == ("id",)
        assert table.name == "stock"
        assert table.identity
        assert "stock" in source.tables()

    def test_a_table_that_is_not_there_is_named(self, source: Source) -> None:
        with pytest.raises(SourceTableUnknown, match="nowhere"):
            source.describe(["nowhere"])

    def test_a_type_that_cannot_be_carried_is_refused_by_name(self, lab: Lab, source: Source) -> None:
        for number, declaration in enumerate(lab.refused):
            lab.execute(f"CREATE TABLE refused_{number} (id INTEGER PRIMARY KEY, odd_one {declaration})")
            with pytest.raises(TypeNotCarried, match="odd_one"):
                source.describe([f"refused_{number}"])

    @pytest.mark.conforms("M1")
    def test_odd_names(self, lab: Lab, source: Source) -> None:
        columns = ", ".join(f"{lab.quote(c)} INTEGER" for c in lab.odd_names)
        values = ", ".join(str(n) for n in range(len(lab.odd_names)))
        for name in lab.odd_names:
            table = lab.quote(name)
            lab.execute(
                f"CREATE TABLE {table} (key_one INTEGER PRIMARY KEY, {columns})",
                f"INSERT INTO {table} VALUES (1, {values})",
            )
        before = lab.objects()
        tables = captured_from_here(source, *(joined(name) for name in lab.odd_names))
        for name in lab.odd_names:
            lab.execute(f"UPDATE {lab.quote(name)} SET {lab.quote(name)} = 77")
        taken = source.capture(tables).taken
        for name in lab.odd_names:
            lab.execute(f"DELETE FROM {lab.quote(name)}")
        for name, table in zip(lab.odd_names, tables, strict=True):
            expected = tuple(77 if c == name else n for n, c in enumerate(lab.odd_names))
            query = exp.select(*(exp.column(c, quoted=True) for c in lab.odd_names)).from_(
                exp.Table(this=exp.to_identifier(table.name, quoted=True))
            )
            assert bag(source.evaluate(query, tables, taken, {})) == Counter([expected])
        assert sum(net(source.changes(tables, taken), table=tables[0].name).values()) == 0
        source.remove(tables)
        assert lab.objects() == before

    def test_every_type_is_carried_exactly(self, lab: Lab, source: Source) -> None:
        """In the first state, in changes, and in answers of the source."""
        declared = ", ".join(f"v{n} {sample.declaration}" for n, sample in enumerate(lab.samples))
        lab.execute(f"CREATE TABLE typed (id INTEGER PRIMARY KEY, {declared})")
        tables = source.describe(["typed"])
        assert [c.type for c in tables[0].columns[1:]] == [sample.type for sample in lab.samples]
        source.install(tables)
        rows = max(len(sample.literals) for sample in lab.samples) + 1
        for row in range(rows):
            literals = (s.literals[row] if row < len(s.literals) else "NULL" for s in lab.samples)
            lab.execute(f"INSERT INTO typed VALUES ({row}, {', '.join(literals)})")
        with source.first_state(tables) as state:
            first = [row for part in state.slices(tables[0], 2) for b in state.read(part) for row in b.to_pylist()]
        captured = source.capture(tables)
        changes = captured.changes["typed"].to_pylist()
        query = sqlglot.parse_one("SELECT * FROM typed", dialect="spark")
        remote = [r for b in source.evaluate(query, tables, captured.taken, {}) for r in b.to_pylist()]
        lab.execute("DELETE FROM typed")
        undone = [r for b in source.evaluate(query, tables, captured.taken, {}) for r in b.to_pylist()]
        for n, sample in enumerate(lab.samples):
            expected = hashable([*sample.values, *[None] * (rows - len(sample.values))])
            for where, got in {"first": first, "changes": changes, "remote": remote, "undone": undone}.items():
                values = hashable(row[f"v{n}"] for row in sorted(got, key=lambda row: row["id"]))
                assert values == expected, f"{sample.declaration} in {where}"
