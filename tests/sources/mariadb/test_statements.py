"""Ways to write that MariaDB has: captured exactly."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pymysql
import pytest
from tests.sources.contract import asked, captured_from_here, consume, ids, now
from tests.sources.lab import net, plus
from tests.sources.mariadb.lab import MariadbLab
from tests.waiting import wait_until

from matview.errors import CaptureBypassed
from matview.sources import Source
from matview.sources.engine import SourceTable
from matview.sources.mariadb.connect import fetched

COLUMNS = ("id", "a", "b", "c", "d")
FILE = "9\t2\tloaded\n10\t20\tloaded\n"

STATEMENTS: dict[str, tuple[str, ...]] = {
    "REPLACE by the key": ("REPLACE INTO t (id, a, b) VALUES (1, 9, 'x')",),
    "REPLACE by another unique index": ("REPLACE INTO t (id, a, b) VALUES (9, 2, 'x')",),
    "REPLACE of two rows by one": ("REPLACE INTO t (id, a, b) VALUES (1, 2, 'x')",),
    "REPLACE of a query": ("REPLACE INTO t (id, a, b) SELECT id + 1, a + 1, b FROM t",),
    "ON DUPLICATE KEY UPDATE": ("INSERT INTO t (id, a) VALUES (1, 9), (8, 8) ON DUPLICATE KEY UPDATE b = 'again'",),
    "ON DUPLICATE KEY UPDATE of the key": ("INSERT INTO t (id, a) VALUES (1, 9) ON DUPLICATE KEY UPDATE id = 77",),
    "INSERT IGNORE": ("INSERT IGNORE INTO t (id, a) VALUES (1, 9), (8, 8), (9, 2)",),
    "UPDATE IGNORE": ("UPDATE IGNORE t SET a = a + 1",),
    "UPDATE IGNORE of the key": ("UPDATE IGNORE t SET id = id + 1 WHERE id <> 2",),
    "UPDATE IGNORE of two tables": (
        "UPDATE IGNORE t JOIN u ON t.id = u.id SET t.a = t.id + 1, u.b = 'x'",
        "DELETE FROM t WHERE id = 3",
    ),
    "UPDATE IGNORE of what others refer to": (
        "CREATE TABLE refers (id INT, FOREIGN KEY (id) REFERENCES t (id), a INT, FOREIGN KEY (a) REFERENCES t (a))",
        "INSERT INTO refers VALUES (1, 2)",
        "UPDATE IGNORE t SET id = id + 10, a = a + 10",
    ),
    "UPDATE IGNORE of null where none may be": ("UPDATE IGNORE t SET d = NULL, b = 'x'",),
    "DELETE IGNORE of what others refer to": (
        "CREATE TABLE refers (id INT, FOREIGN KEY (id) REFERENCES t (id))",
        "INSERT INTO refers VALUES (2)",
        "DELETE IGNORE FROM t",
    ),
    "INSERT IGNORE that would update": (
        "INSERT IGNORE INTO t (id, a) VALUES (1, 7), (8, 8) ON DUPLICATE KEY UPDATE a = 2",
    ),
    "UPDATE of the key": ("UPDATE t SET id = id + 10, a = a + 10",),
    "UPDATE of letters only": ("UPDATE t SET b = UPPER(b)",),
    "UPDATE in an order": ("UPDATE t SET a = a + 1 ORDER BY a DESC",),
    "UPDATE of two tables": ("UPDATE t JOIN u ON t.id = u.id SET t.b = u.b, u.b = 'x'",),
    "DELETE from two tables": ("DELETE t, u FROM t JOIN u ON t.id = u.id",),
    "DELETE with what it deleted": ("DELETE FROM t WHERE id < 3 RETURNING id",),
    "DELETE of some": ("DELETE FROM t ORDER BY id DESC LIMIT 1",),
    "LOAD DATA IGNORE": ("LOAD DATA LOCAL INFILE '{file}' IGNORE INTO TABLE t (id, a, b)",),
    "LOAD DATA REPLACE": ("LOAD DATA LOCAL INFILE '{file}' REPLACE INTO TABLE t (id, a, b)",),
    "a key from the sequence": ("INSERT INTO t (b) VALUES ('x'), ('y')",),
    "tables locked": (
        "LOCK TABLES t WRITE",
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET a = 9 WHERE id = 2",
        "REPLACE INTO t (id, a) VALUES (2, 8)",
    ),
    "in a procedure": ("CREATE PROCEDURE p() BEGIN DELETE FROM t WHERE id = 1; UPDATE t SET b = 'p'; END", "CALL p()"),
    "without checks": ("SET foreign_key_checks = 0, unique_checks = 0", "DELETE FROM t"),
    "in another mode and another zone": (
        "SET sql_mode = 'ANSI,TRADITIONAL', time_zone = '-11:00'",
        "UPDATE t SET b = NULL",
    ),
    "with numbers two apart": ("SET auto_increment_increment = 2", "UPDATE t SET b = 'two apart'"),
}


@pytest.fixture
def tables(lab: MariadbLab, source: Source) -> list[SourceTable]:
    """A table with a key, a unique index and a generated column, and triggers of its user's."""
    lab.execute(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20), c INT AS (a * 2) VIRTUAL, "
        "d INT NOT NULL DEFAULT 5)",
        "CREATE TABLE u (id INT PRIMARY KEY, b VARCHAR(20))",
        "CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, what TEXT)",
        "CREATE TRIGGER theirs BEFORE UPDATE ON t FOR EACH ROW SET NEW.b = CONCAT(NEW.b, '!')",
        "CREATE TRIGGER theirs_too AFTER INSERT ON t FOR EACH ROW INSERT INTO log (what) VALUES (NEW.b)",
        "INSERT INTO t (id, a, b) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, NULL)",
        "INSERT INTO u VALUES (1, 'uno'), (2, 'due')",
    )
    return captured_from_here(source, "t")


@pytest.mark.conforms("M1", "M2")
@pytest.mark.parametrize("what", STATEMENTS)
def test_a_statement(lab: MariadbLab, source: Source, tables: list[SourceTable], what: str, tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text(FILE)
    lab.execute(
        "INSERT INTO t (id, a) VALUES (4, 4)", "UPDATE t SET b = 'four' WHERE id = 4", "DELETE FROM t WHERE id = 4"
    )
    source.acknowledge(tables, source.capture(tables).taken)
    before = now(lab, "t", COLUMNS)
    lab.execute(*(statement.replace("{file}", str(tmp_path / "rows.tsv")) for statement in STATEMENTS[what]))
    after = now(lab, "t", COLUMNS)
    assert plus(before, net(source.capture(tables), table="t")) == after
    assert before != after
    assert source.check(tables, installed=True) == []


@pytest.mark.conforms("M1", "M2")
def test_a_session_that_chooses_numbers(lab: MariadbLab, source: Source) -> None:
    """`SET insert_id` is for the next AUTO_INCREMENT of the session, whosever it is."""
    lab.execute("CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (1), (2)")
    tables = captured_from_here(source, "u")
    lab.execute("INSERT INTO u VALUES (3), (4)")
    taken = source.capture(tables).taken
    for number, row in ((1, 5), (2, 6)):
        lab.execute(f"SET insert_id = {number}", f"INSERT INTO u VALUES ({row})")
        assert row in ids(source.capture(tables, besides=[taken]).changes["u"])
    source.acknowledge(tables, taken)
    assert ids(source.capture(tables).changes["u"]) == [5, 6]


def test_a_writer_without_checks_keeps_nobody_waiting(
    lab: MariadbLab, source: Source, tables: list[SourceTable]
) -> None:
    """InnoDB locks an empty table for it; delta tables are empty most of the time."""
    loading, other = lab.writer(), lab.writer()
    loading.execute("SET unique_checks = 0, foreign_key_checks = 0")
    other.execute("SET innodb_lock_wait_timeout = 1")
    for round_ in range(2):
        source.acknowledge(tables, source.capture(tables).taken)
        loading.begin()
        loading.execute(f"INSERT INTO t (id, a) VALUES ({100 + round_}, {100 + round_})")
        other.execute(f"INSERT INTO t (id, a) VALUES ({200 + round_}, {200 + round_})")
        loading.commit()
        assert ids(source.capture(tables).changes["t"]) == [100 + round_, 200 + round_]
    loading.close()
    other.close()


def test_nothing_is_lost_where_what_is_captured_is_gone(
    lab: MariadbLab, source: Source, tables: list[SourceTable]
) -> None:
    """Writers are told; and when it is there again, nothing is missing."""
    before, place = now(lab, "t", COLUMNS), f"matview_{lab.name}.insert_added_1"
    lab.execute(f"RENAME TABLE {place} TO {place}_away")
    with pytest.raises(pymysql.ProgrammingError, match="insert_added_1"):
        lab.execute("INSERT INTO t (id, a) VALUES (9, 9)")
    with pytest.raises(CaptureBypassed, match="gone"):
        source.capture(tables)
    assert now(lab, "t", COLUMNS) == before


@pytest.mark.parametrize("level", ["REPEATABLE READ", "READ COMMITTED", "SERIALIZABLE"])
def test_ignored_updates_of_rows_that_are_newer_than_the_snapshot(
    lab: MariadbLab, source: Source, tables: list[SourceTable], level: str
) -> None:
    writer = lab.writer()
    writer.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
    writer.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    lab.execute("INSERT INTO t (id, a) VALUES (10, 10)", "UPDATE t SET a = 30 WHERE id = 3")
    source.acknowledge(tables, source.capture(tables).taken)
    before = now(lab, "t", COLUMNS)
    writer.execute("UPDATE IGNORE t SET id = 2 WHERE id = 10")
    writer.execute("UPDATE IGNORE t SET a = 2 WHERE id = 3")
    writer.execute("UPDATE IGNORE t SET a = 31 WHERE id = 3")
    writer.commit()
    writer.close()
    assert plus(before, net(source.capture(tables), table="t")) == now(lab, "t", COLUMNS)


def test_the_hour_that_comes_twice(lab: MariadbLab, source: Source) -> None:
    """A TIMESTAMP is copied as it is kept, not as the writer's zone shows it."""
    lab.execute("CREATE TABLE clock (id INT PRIMARY KEY, at TIMESTAMP NULL)")
    tables = captured_from_here(source, "clock")
    lab.execute(
        "INSERT INTO clock VALUES (1, '2024-10-27 00:30:00'), (2, '2024-10-27 01:30:00')",
        "SET time_zone = 'SYSTEM'",
        "UPDATE clock SET id = id + 10",
        "INSERT INTO clock SELECT id + 10, at FROM clock",
    )
    hours = {row["id"]: row["at"].hour for row in source.capture(tables).changes["clock"].to_pylist()}
    assert hours == {1: 0, 2: 1, 11: 0, 12: 1, 21: 0, 22: 1}


@pytest.mark.conforms("M6")
def test_a_transaction_in_two_phases(lab: MariadbLab, source: Source, tables: list[SourceTable]) -> None:
    writer = lab.writer()
    for statement in ("XA START 'one'", "DELETE FROM t WHERE id = 1", "XA END 'one'", "XA PREPARE 'one'"):
        writer.execute(statement)
    lab.execute("DELETE FROM t WHERE id = 2")
    first = source.capture(tables)
    writer.execute("XA COMMIT 'one'")
    writer.close()
    source.acknowledge(tables, first.taken)
    assert ids(first.changes["t"]) == [2]
    assert ids(source.capture(tables).changes["t"]) == [1]


@pytest.mark.conforms("M9")
def test_acknowledging_waits_for_no_open_transaction(
    lab: MariadbLab, source: Source, tables: list[SourceTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of an open transaction stand before, between and after those of the set."""
    monkeypatch.setattr("matview.sources.mariadb.capture.BATCH", 2)
    writer = lab.writer()
    writer.begin()
    for number in range(20, 26):
        writer.execute(f"INSERT INTO t (id, a) VALUES ({number}, {number})")
        lab.execute(f"INSERT INTO t (id, a) VALUES ({number + 100}, {number + 100}), ({number + 200}, {number + 200})")
    writer.execute("INSERT INTO t (id) VALUES (26)")
    captured = source.capture(tables)
    source.acknowledge(tables, captured.taken)
    assert source.waiting(tables).rows == 0
    writer.commit()
    writer.close()
    assert sorted(ids(source.capture(tables).changes["t"])) == list(range(20, 27))
    source.acknowledge(tables, captured.taken)
    assert source.waiting(tables).rows == 7


@pytest.mark.conforms("M5", "M18")
def test_rounds_in_a_pipeline(lab: MariadbLab, source: Source, tables: list[SourceTable]) -> None:
    """The second round takes what the first, which is not acknowledged yet, has not; state old has both."""
    lab.execute("DELETE FROM t WHERE id = 1")
    one = source.capture(tables)
    lab.execute("DELETE FROM t WHERE id = 2")
    two = source.capture(tables, besides=[one.taken])
    lab.execute("DELETE FROM t WHERE id = 3")
    assert [ids(captured.changes["t"]) for captured in (one, two)] == [[1], [2]]
    assert asked(source, "SELECT id FROM t", tables, one.taken) == Counter([(2,), (3,)])
    assert asked(source, "SELECT id FROM t", tables, two.taken) == Counter([(3,)])
    source.acknowledge(tables, one.taken)
    assert asked(source, "SELECT id FROM t", tables, two.taken) == Counter([(3,)])
    source.acknowledge(tables, two.taken)
    assert ids(source.capture(tables).changes["t"]) == [3]


def test_rows_of_rounds_that_wait_are_not_read_again(
    lab: MariadbLab, source: Source, tables: list[SourceTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.execute(*(f"INSERT INTO t (id, a) VALUES ({number}, {number})" for number in range(10, 30)))
    waiting = source.capture(tables).taken
    lab.execute("INSERT INTO t (id, a) VALUES (30, 30)")
    read = list[Any]()

    def spied(connection: Any, query: str, parameters: Any = None) -> list[Any]:
        found = fetched(connection, query, parameters)
        read.extend(found if "added_" in query or "deleted_" in query else ())
        return found

    monkeypatch.setattr("matview.sources.mariadb.capture.fetched", spied)
    assert ids(source.capture(tables, besides=[waiting]).changes["t"]) == [30]
    assert len(read) == 1


def test_capture_makes_no_writer_wait_for_another(lab: MariadbLab, tables: list[SourceTable]) -> None:
    """One statement waits for a row in the middle; who holds that row goes on meanwhile, and it does."""
    holder, waiter = lab.writer(), lab.writer()
    holder.begin()
    holder.execute("UPDATE t SET b = 'held' WHERE id = 2")
    thread = threading.Thread(target=waiter.execute, args=("UPDATE t SET b = 'waited' WHERE id IN (1, 2)",))
    thread.start()
    query = "SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
    wait_until(lambda: Waits(lab).asks(query))
    holder.execute("UPDATE t SET b = 'on' WHERE id = 3")
    holder.commit()
    thread.join(20)
    assert dict(lab.rows("t", ["id", "b"])) == {1: "waited!", 2: "waited!", 3: "on!"}
    holder.close()
    waiter.close()


class Waits:
    """Questions to the server, each by a connection of its own."""

    def __init__(self, lab: MariadbLab) -> None:
        self.lab = lab

    def asks(self, query: str) -> object:
        writer = self.lab.writer()
        try:
            return writer.execute(query)
        finally:
            writer.close()


@pytest.mark.conforms("M6")
def test_snapshots_that_show_the_same(lab: MariadbLab, source: Source, tables: list[SourceTable]) -> None:
    """Several readers, one state: also while others write."""
    lab.execute("INSERT INTO t (a) SELECT seq + 10 FROM seq_1_to_500")
    before = now(lab, "t", COLUMNS)
    with source.first_state(tables) as state:
        assert state.free.qsize() > 1  # type: ignore[attr-defined]
        parts = state.slices(tables[0], 100)
        readers = [state.read(part) for part in parts[:3]]
        seen = {"t": Counter[tuple[object, ...]]()}
        for number, reader in enumerate(readers):
            lab.execute(f"DELETE FROM t WHERE id % 7 = {number}")
            seen["t"].update(tuple(row.values()) for batch in reader for row in batch.to_pylist())
        for part in parts[3:]:
            seen["t"].update(tuple(row.values()) for batch in state.read(part) for row in batch.to_pylist())
    assert seen["t"] == before
    source.acknowledge(tables, state.taken)
    consume(source, tables, seen)
    assert seen["t"] == now(lab, "t", COLUMNS)


def test_a_table_truncated_while_it_is_read(lab: MariadbLab, source: Source, tables: list[SourceTable]) -> None:
    with source.first_state(tables) as state:
        lab.execute("TRUNCATE TABLE t")
        with pytest.raises(Exception, match="MV706"):
            [list(state.read(part)) for part in state.slices(tables[0], 10)]


def test_who_writes_needs_no_right_for_capture(lab: MariadbLab, source: Source, tables: list[SourceTable]) -> None:
    name = lab.url.partition("?")[0].rpartition("/")[2]
    lab.execute(
        "CREATE OR REPLACE USER matview_writer@localhost IDENTIFIED BY 'w'",
        f"GRANT INSERT, UPDATE, DELETE, SELECT ON {name}.t TO matview_writer@localhost",
    )
    writer = MariadbLab(lab.url.replace("root@", "matview_writer:w@")).writer()
    writer.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(pymysql.err.OperationalError, match="denied"):
        writer.execute(f"SELECT * FROM matview_{name}.deleted_1")
    writer.close()
    assert ids(source.capture(tables).changes["t"]) == [1]
    lab.execute("DROP USER matview_writer@localhost")
