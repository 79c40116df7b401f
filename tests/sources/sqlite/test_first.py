"""The first state, read in many short steps while others write."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.sources.contract import captured_from_here, consume, now
from tests.sources.history import writers
from tests.sources.lab import Row, bag
from tests.sources.sqlite.lab import SqliteLab
from tests.waiting import wait_until

from matview.errors import SourceDrifted
from matview.sources import Source
from matview.sources.engine import FirstState, SourceTable
from matview.sources.sqlite import first

TABLES = {
    "with a key": "CREATE TABLE stock (id INTEGER PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2))",
    "without a key": "CREATE TABLE stock (id INTEGER, city VARCHAR(40), amount DECIMAL(12,2))",
    "without rowid": (
        "CREATE TABLE stock (id INTEGER PRIMARY KEY, city VARCHAR(40), amount DECIMAL(12,2)) WITHOUT ROWID"
    ),
}
NUMBERS = "WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59)"


def made(lab: SqliteLab, declaration: str) -> None:
    values = f"{NUMBERS} SELECT i * 3, 'c' || i % 7, i FROM n"
    lab.execute(declaration, f"INSERT INTO stock (id, city, amount) {values}")


def in_parallel(state: FirstState, table: SourceTable, rows: int) -> Counter[Row]:
    parts = state.slices(table, rows)
    with ThreadPoolExecutor(3) as pool:
        return sum((bag(batches) for batches in pool.map(lambda part: list(state.read(part)), parts)), Counter[Row]())


@pytest.mark.conforms("M6")
@pytest.mark.parametrize("kind", TABLES)
def test_steps_beside_writers(lab: SqliteLab, source: Source, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first, "STEP", 5)
    made(lab, TABLES[kind])
    tables = captured_from_here(source, "stock")
    with writers(lab, [("stock", kind != "without a key")], seed=7) as done:
        wait_until(lambda: len(done) > 5)
        with source.first_state(tables) as state:
            seen = {"stock": in_parallel(state, tables[0], 20)}
        source.acknowledge(tables, state.taken)
        consume(source, tables, seen)
    consume(source, tables, seen)
    assert seen == {"stock": now(lab, "stock")}


@pytest.mark.parametrize("kind", TABLES)
def test_rows_that_come_faster_than_they_are_read(
    lab: SqliteLab, source: Source, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each step there come more new rows than it reads."""
    monkeypatch.setattr(first, "STEP", 5)
    made(lab, TABLES[kind])
    tables, before = captured_from_here(source, "stock"), now(lab, "stock")
    step, steps = first.SqliteFirstState.step, list[int]()

    def beside_a_writer(*arguments: Any) -> Any:
        steps.append(len(steps))
        assert len(steps) < 100
        values = f"{NUMBERS} SELECT (SELECT max(id) FROM stock) + i + 1, 'new', i FROM n WHERE i < 9"
        lab.execute(f"INSERT INTO stock (id, city, amount) {values}")
        return step(*arguments)

    monkeypatch.setattr(first.SqliteFirstState, "step", beside_a_writer)
    with source.first_state(tables) as state:
        parts = state.slices(tables[0], 20)
        assert sum((bag(list(state.read(part))) for part in parts), Counter[Row]()) == before


def test_steps_by_a_key_of_several_columns(lab: SqliteLab, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps follow the order of the key, whatever its collations, its directions and its names."""
    monkeypatch.setattr(first, "STEP", 5)
    columns = ["id", "city", "a, b"]
    key = 'PRIMARY KEY (city COLLATE NOCASE DESC, "a, b", id)'
    lab.execute(
        f'CREATE TABLE stock (id INTEGER, city TEXT, "a, b" INTEGER, {key}) WITHOUT ROWID',
        f"INSERT INTO stock {NUMBERS} SELECT i, CASE WHEN i % 2 THEN 'c' ELSE 'C' END || i % 5, i % 4 FROM n",
    )
    tables, before = captured_from_here(source, "stock"), now(lab, "stock", columns)
    with source.first_state(tables) as state:
        lab.execute(
            "UPDATE stock SET city = lower(city), id = id + 1 WHERE id % 3 = 0", "DELETE FROM stock WHERE id < 9"
        )
        assert in_parallel(state, tables[0], 20) == before
    assert now(lab, "stock", columns) != before


def test_rows_that_are_gone_before_slices_are_made(lab: SqliteLab, source: Source) -> None:
    """The least and the greatest rowid of the beginning are not those of now."""
    made(lab, TABLES["with a key"])
    tables, before = captured_from_here(source, "stock"), now(lab, "stock")
    with source.first_state(tables) as state:
        lab.execute("DELETE FROM stock WHERE id < 50 OR id > 100", "UPDATE stock SET id = id + 1000 WHERE id < 70")
        assert in_parallel(state, tables[0], 10) == before


def test_a_writer_is_not_kept_out_between_steps(
    lab: SqliteLab, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first, "STEP", 5)
    made(lab, TABLES["with a key"])
    tables, before = captured_from_here(source, "stock"), now(lab, "stock")
    impatient = sqlite3.connect(lab.path, timeout=0, isolation_level=None)
    got = Counter[Row]()
    with source.first_state(tables) as state:
        for number, part in enumerate(state.read(state.slices(tables[0], 1000)[0])):
            impatient.execute("DELETE FROM stock WHERE id = ?", (number * 30,))
            got += bag([part])
    impatient.close()
    assert got == before
    assert now(lab, "stock") != before


@pytest.mark.parametrize(("kind", "steady"), [("with a key", True), ("without a key", False), ("without rowid", True)])
def test_rows_numbered_anew_while_they_are_read(lab: SqliteLab, source: Source, kind: str, steady: bool) -> None:
    made(lab, TABLES[kind])
    tables, before = captured_from_here(source, "stock"), now(lab, "stock")
    with source.first_state(tables) as state:
        lab.execute("DELETE FROM stock WHERE id = 0", "VACUUM")
        if steady:
            assert in_parallel(state, tables[0], 20) == before
        else:
            with pytest.raises(SourceDrifted, match="stock"):
                in_parallel(state, tables[0], 20)


def test_a_table_that_drifts_while_it_is_read(lab: SqliteLab, source: Source) -> None:
    made(lab, TABLES["with a key"])
    tables = captured_from_here(source, "stock")
    with source.first_state(tables) as state:
        lab.execute("ALTER TABLE stock ADD COLUMN more TEXT")
        with pytest.raises(SourceDrifted, match="more"):
            in_parallel(state, tables[0], 20)


# short locks ----------------------------------------------------------------------------------------------------------


@pytest.mark.conforms("M6", "M11")
def test_capture_waits_for_no_open_transaction(lab: SqliteLab, source: Source) -> None:
    made(lab, TABLES["with a key"])
    tables = captured_from_here(source, "stock")
    writer = lab.writer()
    writer.begin()
    writer.execute("DELETE FROM stock WHERE id = 0")
    first_one = source.capture(tables)
    writer.commit()
    second = source.capture(tables)
    assert (first_one.rows, second.rows) == (0, 1)
    source.acknowledge(tables, first_one.taken)
    source.acknowledge(tables, second.taken)
    writer.close()


@pytest.mark.conforms("M9")
def test_what_writes_waits_with_nothing_held(lab: SqliteLab, source: Source) -> None:
    """Acknowledging meets an open transaction, and is done when that has ended."""
    made(lab, TABLES["with a key"])
    tables = captured_from_here(source, "stock")
    lab.execute("DELETE FROM stock WHERE id < 6")
    captured = source.capture(tables)
    writer = lab.writer()
    writer.begin()
    writer.execute("DELETE FROM stock WHERE id = 30")
    thread = threading.Thread(target=source.acknowledge, args=(tables, captured.taken))
    thread.start()
    writer.execute("DELETE FROM stock WHERE id = 33")
    writer.commit()
    writer.close()
    thread.join(20)
    assert source.waiting(tables).rows == 2


@pytest.mark.conforms("M18")
def test_rounds_in_a_pipeline(lab: SqliteLab, source: Source) -> None:
    """The second round takes what the first, which is not acknowledged yet, has not; state old has both."""
    made(lab, TABLES["with a key"])
    tables = captured_from_here(source, "stock")
    lab.execute("DELETE FROM stock WHERE id = 0")
    one = source.capture(tables)
    lab.execute("DELETE FROM stock WHERE id = 3")
    two = source.capture(tables, besides=[one.taken])
    assert [captured.changes["stock"].column("id").to_pylist() for captured in (one, two)] == [[0], [3]]
    source.acknowledge(tables, one.taken)
    assert source.changes(tables, two.taken).rows == 1
    source.acknowledge(tables, two.taken)
    assert source.capture(tables).rows == 0


def test_many_delta_rows_are_deleted_some_at_a_time(
    lab: SqliteLab, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matview.sources.sqlite.capture.BATCH", 7)
    made(lab, TABLES["with a key"])
    tables = captured_from_here(source, "stock")
    lab.execute("UPDATE stock SET amount = 0", "DELETE FROM stock WHERE id < 30")
    source.acknowledge(tables, source.capture(tables).taken)
    assert [lab.rows(f"matview_{delta}_1", ["__number"]) for delta in ("added", "deleted")] == [[(60,)], [(70,)]]
    lab.execute("DELETE FROM stock WHERE id = 30")
    assert source.capture(tables).changes["stock"].column("id").to_pylist() == [30]
