"""What every source keeps to, whatever its engine. An engine's tests inherit it, and give the fixture `lab`:

class TestContract(Contract): ...
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from tests.sources.history import writers
from tests.sources.lab import Lab, Row, bag, hashable, net, plus
from tests.waiting import wait_until

from matview.errors import MatviewError, SourceTableUnknown, TypeNotCarried
from matview.sources import connect
from matview.sources.engine import WEIGHT, FirstState, Source, SourceTable, Taken
from matview.sources.names import joined
from matview.sources.types import arrow_schema

COLUMNS = ("id", "city", "amount")

STATEMENTS: dict[str, tuple[str, ...]] = {
    "insert": ("INSERT INTO stock VALUES (10, 'Oslo', 1.10)",),
    "insert of several rows": ("INSERT INTO stock VALUES (10, 'Oslo', 1.10), (11, 'Oslo', 1.10), (12, NULL, NULL)",),
    "insert of a query": ("INSERT INTO stock SELECT id + 10, city, amount FROM stock",),
    "insert without all columns": ("INSERT INTO stock (id) VALUES (10)",),
    "update of one row": ("UPDATE stock SET amount = 9.99 WHERE id = 1",),
    "update of several rows": ("UPDATE stock SET amount = amount + 1",),
    "update of the key": ("UPDATE stock SET id = id + 100",),
    "update to null": ("UPDATE stock SET city = NULL, amount = NULL WHERE id < 3",),
    "update that changes nothing": ("UPDATE stock SET amount = amount",),
    "update of no row": ("UPDATE stock SET amount = 0 WHERE id = 77",),
    "delete": ("DELETE FROM stock WHERE id = 2",),
    "delete of all": ("DELETE FROM stock",),
    "insert and delete again": ("INSERT INTO stock VALUES (10, 'x', 1)", "DELETE FROM stock WHERE id = 10"),
    "delete and insert again": ("DELETE FROM stock WHERE id = 1", "INSERT INTO stock VALUES (1, 'Oslo', 12.50)"),
    "one row again and again": (*["UPDATE stock SET amount = amount + 1 WHERE id = 1"] * 4,),
}

AS_AT_FIRST = (
    "DELETE FROM stock",
    "INSERT INTO stock VALUES (1, 'Oslo', 12.50), (2, 'Bergen', -1.00), (3, NULL, NULL)",
)


class Contract:
    # fixtures ---------------------------------------------------------------------------------------------------------

    @pytest.fixture
    def source(self, lab: Lab) -> Iterator[Source]:
        source = connect(lab.url)
        yield source
        source.close()

    @pytest.fixture
    def stock(self, lab: Lab, source: Source) -> list[SourceTable]:
        """A table with a key and three rows, captured from here on."""
        lab.execute(
            f"CREATE TABLE stock (id INTEGER PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2)){self.table_options}",
            AS_AT_FIRST[1],
        )
        return captured_from_here(source, "stock")

    @pytest.fixture
    def heap(self, lab: Lab, source: Source) -> list[SourceTable]:
        """A table without a key, in which a row stands twice."""
        lab.execute(
            f"CREATE TABLE heap (id INTEGER, city VARCHAR(40), amount DECIMAL(12,2)){self.table_options}",
            "INSERT INTO heap VALUES (1, 'Oslo', 12.50), (1, 'Oslo', 12.50), (NULL, NULL, NULL), (NULL, NULL, NULL)",
        )
        return captured_from_here(source, "heap")

    table_options = ""

    # what there is ----------------------------------------------------------------------------------------------------

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

    # capture ----------------------------------------------------------------------------------------------------------

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

    # sets of transactions ---------------------------------------------------------------------------------------------

    @pytest.mark.conforms("M6", "M9")
    def test_two_rounds(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (40, 'first', 1)")
        first = source.capture(stock)
        lab.execute("INSERT INTO stock VALUES (41, 'second', 1)")
        source.acknowledge(stock, first.taken)
        second = source.capture(stock)
        assert ids(first.changes["stock"]) == [40]
        assert ids(second.changes["stock"]) == [41]
        source.acknowledge(stock, second.taken)
        assert source.capture(stock).rows == 0

    @pytest.mark.conforms("M9")
    def test_to_acknowledge_again_is_harmless(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (40, 'first', 1)")
        first = source.capture(stock)
        source.acknowledge(stock, first.taken)
        lab.execute("INSERT INTO stock VALUES (41, 'second', 1)")
        source.acknowledge(stock, first.taken)
        source.acknowledge(stock, json.loads(json.dumps(first.taken)))
        assert ids(source.capture(stock).changes["stock"]) == [41]

    @pytest.mark.conforms("M10")
    def test_the_changes_of_a_set_are_the_same_again(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (40, 'first', 1)", "DELETE FROM stock WHERE id = 1")
        first = source.capture(stock)
        lab.execute("UPDATE stock SET city = 'later'", "INSERT INTO stock VALUES (41, 'later', 1)")
        after_a_crash = connect(lab.url)
        again = after_a_crash.changes(stock, json.loads(json.dumps(first.taken)))
        after_a_crash.close()
        assert net(again, table="stock") == net(first, table="stock")
        assert (again.transactions, again.rows) == (first.transactions, first.rows)

    @pytest.mark.conforms("M6")
    def test_a_lower_transaction_that_commits_later_is_neither_lost_nor_taken_twice(
        self, lab: Lab, source: Source, stock
    ) -> None:
        if not lab.many_writers:
            pytest.skip("one writer at a time: nobody can be late")
        late, early = lab.writer(), lab.writer()
        late.begin()
        late.execute("INSERT INTO stock VALUES (50, 'late', 1)")
        early.begin()
        early.execute("INSERT INTO stock VALUES (51, 'early', 1)")
        early.commit()
        first = source.capture(stock)
        assert ids(first.changes["stock"]) == [51]
        late.execute("INSERT INTO stock VALUES (52, 'late', 1)")
        late.commit()
        assert ids(source.changes(stock, first.taken).changes["stock"]) == [51]
        source.acknowledge(stock, first.taken)
        assert sorted(ids(source.capture(stock).changes["stock"])) == [50, 52]
        late.close()
        early.close()

    @pytest.mark.conforms("M6")
    def test_one_set_for_several_tables(self, lab: Lab, source: Source, stock, heap) -> None:
        lab.together("INSERT INTO stock VALUES (60, 'x', 1)", "INSERT INTO heap VALUES (60, 'x', 1)")
        captured = source.capture([*stock, *heap])
        assert ids(captured.changes["stock"]) == ids(captured.changes["heap"]) == [60]
        source.acknowledge([*stock, *heap], captured.taken)
        assert source.capture([*stock, *heap]).rows == 0

    @pytest.mark.conforms("M18")
    def test_a_round_beside_one_that_is_not_acknowledged(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (65, 'one', 1)")
        one = source.capture(stock)
        lab.execute("INSERT INTO stock VALUES (66, 'two', 1)")
        two = source.capture(stock, besides=[one.taken])
        assert (ids(one.changes["stock"]), ids(two.changes["stock"])) == ([65], [66])
        lab.execute("INSERT INTO stock VALUES (67, 'three', 1)")
        source.acknowledge(stock, one.taken)
        assert ids(source.changes(stock, two.taken).changes["stock"]) == [66]
        three = source.capture(stock, besides=[two.taken])
        assert ids(three.changes["stock"]) == [67]
        source.acknowledge(stock, two.taken)
        assert ids(source.changes(stock, three.taken).changes["stock"]) == [67]
        source.acknowledge(stock, three.taken)
        assert source.capture(stock).rows == 0

    @pytest.mark.conforms("M13")
    def test_one_transaction_at_a_time(self, lab: Lab, source: Source, stock, heap) -> None:
        tables = [*stock, *heap]
        if not lab.orders_transactions:
            with pytest.raises(MatviewError):
                source.capture(tables, most=1)
            return
        states = [now(lab, "stock")]
        for statements in STATEMENTS.values():
            lab.together(*AS_AT_FIRST, *statements, "INSERT INTO heap VALUES (1, 'x', 1)")
            states.append(now(lab, "stock"))
        seen = [states[0]]
        while (captured := source.capture(tables, most=1)).transactions:
            assert captured.transactions == 1
            assert captured.changes["heap"].num_rows == 1
            seen.append(plus(seen[-1], net(captured, table="stock")))
            source.acknowledge(tables, captured.taken)
        assert seen == states

    # first state ------------------------------------------------------------------------------------------------------

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

    # names, nulls, types ----------------------------------------------------------------------------------------------

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
        lab.execute(f"CREATE TABLE typed (id INTEGER PRIMARY KEY, {declared}){self.table_options}")
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

    # install and remove -----------------------------------------------------------------------------------------------

    def test_nothing_stands_against_it_before_and_nothing_has_drifted_after(self, lab: Lab, source: Source) -> None:
        lab.execute("CREATE TABLE fine (id INTEGER PRIMARY KEY, city VARCHAR(40))")
        tables = source.describe(["fine"])
        assert source.check(tables, installed=False) == []
        source.install(tables)
        assert source.check(tables, installed=True) == []
        lab.execute("INSERT INTO fine VALUES (1, 'x')")
        source.acknowledge(tables, source.capture(tables).taken)
        assert source.check(tables, installed=True) == []
        assert source.describe(["fine"]) == tables

    @pytest.mark.conforms("M1")
    def test_remove_leaves_nothing(self, lab: Lab, source: Source) -> None:
        lab.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)", "CREATE TABLE two (id INTEGER)")
        before = lab.objects()
        tables = captured_from_here(source, "one", "two")
        assert lab.objects() != before
        lab.execute("INSERT INTO one VALUES (1)", "INSERT INTO two VALUES (1)")
        source.remove(tables[:1])
        assert ids(source.capture(tables[1:]).changes["two"]) == [1]
        source.remove(tables)
        assert lab.objects() == before
        source.remove(tables)
        lab.execute("INSERT INTO one VALUES (2)", "DELETE FROM two")

    def test_to_install_again_is_harmless(self, lab: Lab, source: Source, stock) -> None:
        lab.execute("INSERT INTO stock VALUES (70, 'x', 1)")
        source.install(stock)
        lab.execute("INSERT INTO stock VALUES (71, 'x', 1)")
        assert sorted(ids(source.capture(stock).changes["stock"])) == [70, 71]

    # drift ------------------------------------------------------------------------------------------------------------

    def test_drift_is_noticed(self, lab: Lab, source: Source) -> None:
        for number, (what, statements) in enumerate(lab.drifts.items()):
            name = f"drifting_{number}"
            lab.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))")
            lab.execute(f"CREATE TABLE steady_{number} (id INTEGER PRIMARY KEY)")
            tables = captured_from_here(source, name, f"steady_{number}")
            assert source.check(tables, installed=True) == []
            lab.execute(*(statement.replace("{table}", name) for statement in statements))
            problems = source.check(tables, installed=True)
            assert {problem.table for problem in problems} == {name}, what
            assert all(problem.help for problem in problems), what
            with pytest.raises(MatviewError, match=name):
                source.capture(tables)
            assert source.capture(tables[1:]).rows == 0

    # subqueries in state old ------------------------------------------------------------------------------------------

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

    # how far it is ahead ----------------------------------------------------------------------------------------------

    def test_what_waits(self, lab: Lab, source: Source, stock, heap) -> None:
        tables = [*stock, *heap]
        nothing = source.waiting(tables)
        assert (nothing.rows, nothing.since) == (0, None)
        lab.execute("INSERT INTO stock VALUES (80, 'x', 1), (81, 'x', 1)", "UPDATE heap SET amount = 1 WHERE id = 1")
        waiting = source.waiting(tables)
        assert waiting.rows == 6
        assert waiting.since is not None
        assert waiting.since.tzinfo is not None
        captured = source.capture(tables)
        assert captured.transactions == 2 or not lab.orders_transactions
        source.acknowledge(tables, captured.taken)
        assert source.waiting(tables).rows == 0


# helpers --------------------------------------------------------------------------------------------------------------


def captured_from_here(source: Source, *names: str) -> list[SourceTable]:
    tables = source.describe(names)
    source.install(tables)
    return tables


def now(lab: Lab, table: str, columns: Sequence[str] = COLUMNS) -> Counter[Row]:
    return Counter(lab.rows(table, columns))


def ids(changes: pa.Table) -> list[int]:
    return changes.column("id").to_pylist()


def read(state: FirstState, table: SourceTable) -> Counter[Row]:
    return bag(batch for part in state.slices(table, 30) for batch in state.read(part))


def consume(source: Source, tables: Sequence[SourceTable], seen: dict[str, Counter[Row]]) -> None:
    """A round that adds what it captures to what has been seen."""
    captured = source.capture(tables)
    for table in tables:
        seen[table.name] = plus(seen[table.name], net(captured, table=table.name))
    source.acknowledge(tables, captured.taken)


def asked(
    source: Source,
    query: str,
    tables: Sequence[SourceTable],
    taken: Taken,
    shipped: dict[str, pa.Table] | None = None,
) -> Counter[Row]:
    tree = sqlglot.parse_one(query, dialect="spark")
    assert isinstance(tree, exp.Query)
    return bag(source.evaluate(tree, tables, taken, shipped or {}))
