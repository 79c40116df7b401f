"""Every way in which PostgreSQL lets rows change: what was there and what was captured make the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg
import pytest
from tests.sources.lab import Row, hashable, net, plus
from tests.sources.postgres.lab import PostgresLab

from matview.sources import connect
from matview.sources.engine import Source

KEYED = "CREATE TABLE r (id int PRIMARY KEY, city text, amount numeric(12,2))"
ROWS = "INSERT INTO r SELECT g, 'city ' || g % 3, g FROM generate_series(1, 10) AS g"
PARTITIONED = (
    "CREATE TABLE r (id int, city text, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
    "CREATE TABLE r_low PARTITION OF r FOR VALUES FROM (0) TO (100)",
    "CREATE TABLE r_high (city text, extra int, id int NOT NULL)",
    "ALTER TABLE r_high DROP COLUMN extra",
    "ALTER TABLE r ATTACH PARTITION r_high FOR VALUES FROM (100) TO (1000)",
    "CREATE TABLE r_rest PARTITION OF r DEFAULT PARTITION BY LIST (id)",
    "CREATE TABLE r_rest_all PARTITION OF r_rest DEFAULT",
    "INSERT INTO r SELECT g, 'city' FROM generate_series(1, 2000, 50) AS g",
)
PARENT_AND_CHILD = (
    "CREATE TABLE parent (id int PRIMARY KEY, name text)",
    "INSERT INTO parent SELECT g, 'p' FROM generate_series(1, 5) AS g",
)


@dataclass(frozen=True)
class Case:
    """Tables (the captured one is r), and what their users do; several captured tables are named."""

    before: Sequence[str]
    statements: Sequence[str]
    tables: Sequence[str] = ("r",)


CASES = {
    "COPY": Case([KEYED, ROWS], ["COPY r FROM PROGRAM 'printf \"11\\tx\\t1\\n12\\t\\\\\\\\N\\t2\\n\"'"]),
    "ON CONFLICT DO NOTHING": Case(
        [KEYED, ROWS], ["INSERT INTO r VALUES (1, 'x', 1), (50, 'x', 1) ON CONFLICT DO NOTHING"]
    ),
    "ON CONFLICT DO UPDATE": Case(
        [KEYED, ROWS],
        ["INSERT INTO r VALUES (1, 'x', 1), (50, 'x', 1) ON CONFLICT (id) DO UPDATE SET city = excluded.city || 'y'"],
    ),
    "MERGE": Case(
        [KEYED, ROWS],
        [
            "MERGE INTO r USING generate_series(8, 14) AS s(id) ON r.id = s.id WHEN MATCHED AND s.id = 8 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET amount = 0 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new', 1)"
        ],
    ),
    "UPDATE FROM": Case(
        [KEYED, ROWS], ["UPDATE r SET amount = s.g FROM generate_series(1, 3) AS s(g) WHERE r.id = s.g"]
    ),
    "several in one": Case(
        [KEYED, ROWS],
        [
            "WITH gone AS (DELETE FROM r WHERE id < 4 RETURNING *), changed AS (UPDATE r SET amount = 0 WHERE id = 7) "
            "INSERT INTO r SELECT id + 100, city, amount FROM gone"
        ],
    ),
    "TRUNCATE": Case([KEYED, ROWS], ["TRUNCATE r", "INSERT INTO r VALUES (1, 'again', 1)"]),
    "TRUNCATE in a transaction": Case(
        [KEYED, ROWS],
        ["BEGIN; INSERT INTO r VALUES (99, 'x', 1); TRUNCATE r; INSERT INTO r VALUES (1, 'y', 1); COMMIT"],
    ),
    "TRUNCATE rolled back": Case([KEYED, ROWS], ["BEGIN; TRUNCATE r; ROLLBACK", "DELETE FROM r WHERE id = 1"]),
    "TRUNCATE that cascades": Case(
        [
            *PARENT_AND_CHILD,
            "CREATE TABLE r (id int REFERENCES parent, v text)",
            "INSERT INTO r VALUES (1, 'a'), (1, 'a')",
        ],
        ["TRUNCATE parent CASCADE"],
        ("r", "parent"),
    ),
    "TRUNCATE after another trigger has written": Case(
        [
            KEYED,
            ROWS,
            "CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN INSERT INTO r VALUES (77, ''last'', 1); RETURN NULL; END'",
            "CREATE TRIGGER a_trigger BEFORE TRUNCATE ON r EXECUTE FUNCTION more()",
        ],
        ["TRUNCATE r"],
    ),
    "DELETE that cascades": Case(
        [
            *PARENT_AND_CHILD,
            "CREATE TABLE r (id int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, v text)",
            "INSERT INTO r SELECT g % 5 + 1, 'v' FROM generate_series(1, 20) AS g",
            "CREATE TABLE grandchild (v text)",
        ],
        ["DELETE FROM parent WHERE id < 3", "UPDATE parent SET id = id + 10 WHERE id IN (3, 4)"],
        ("r", "parent"),
    ),
    "DELETE that cascades twice": Case(
        [
            *PARENT_AND_CHILD,
            "CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent ON DELETE CASCADE)",
            "CREATE TABLE r (c int REFERENCES child ON DELETE CASCADE)",
            "INSERT INTO child SELECT g, g % 5 + 1 FROM generate_series(1, 20) AS g",
            "INSERT INTO r SELECT g FROM generate_series(1, 20) AS g",
        ],
        ["DELETE FROM parent"],
        ("r", "child", "parent"),
    ),
    "a table that refers to itself": Case(
        [
            "CREATE TABLE r (id int PRIMARY KEY, up int REFERENCES r ON DELETE CASCADE)",
            "INSERT INTO r SELECT g, nullif(g / 2, 0) FROM generate_series(1, 30) AS g",
        ],
        ["DELETE FROM r WHERE id = 3"],
    ),
    "SET NULL and SET DEFAULT": Case(
        [
            *PARENT_AND_CHILD,
            "CREATE TABLE r (a int REFERENCES parent ON DELETE SET NULL, "
            "b int DEFAULT 5 REFERENCES parent ON DELETE SET DEFAULT)",
            "INSERT INTO r SELECT g % 5 + 1, g % 3 + 1 FROM generate_series(1, 20) AS g",
        ],
        ["DELETE FROM parent WHERE id <= 2"],
    ),
    "a deferred cascade": Case(
        [
            *PARENT_AND_CHILD,
            "CREATE TABLE r (id int REFERENCES parent ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED)",
            "INSERT INTO r SELECT g % 5 + 1 FROM generate_series(1, 20) AS g",
        ],
        ["BEGIN; DELETE FROM parent WHERE id = 1; INSERT INTO r VALUES (2); COMMIT"],
    ),
    "keys exchanged, checked at the end": Case(
        [
            "CREATE TABLE r (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text)",
            "INSERT INTO r VALUES (1, 'a'), (2, 'b')",
        ],
        ["UPDATE r SET id = 3 - id"],
    ),
    "another trigger that changes the row": Case(
        [
            KEYED,
            ROWS,
            "CREATE FUNCTION better() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN IF NEW.id % 2 = 0 THEN RETURN NULL; END IF; NEW.city = upper(NEW.city); RETURN NEW; END'",
            "CREATE TRIGGER better BEFORE INSERT OR UPDATE ON r FOR EACH ROW EXECUTE FUNCTION better()",
        ],
        ["INSERT INTO r SELECT g, 'new', 1 FROM generate_series(20, 25) AS g", "UPDATE r SET amount = 0"],
    ),
    "another trigger that writes the same table": Case(
        [
            "CREATE TABLE r (id int, depth int)",
            "CREATE FUNCTION deeper() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.depth > 0 THEN "
            "INSERT INTO r VALUES (NEW.id, NEW.depth - 1); UPDATE r SET id = id + 1 WHERE depth = NEW.depth; END IF; "
            "RETURN NULL; END'",
            "CREATE TRIGGER deeper AFTER INSERT ON r FOR EACH ROW EXECUTE FUNCTION deeper()",
        ],
        ["INSERT INTO r VALUES (1, 3), (2, 2)"],
    ),
    "rules": Case(
        [
            KEYED,
            ROWS,
            "CREATE TABLE elsewhere (LIKE r)",
            "CREATE RULE also AS ON INSERT TO r DO ALSO INSERT INTO elsewhere VALUES (NEW.*)",
            "CREATE RULE hidden AS ON DELETE TO r DO INSTEAD UPDATE r SET city = 'deleted' WHERE id = OLD.id",
        ],
        ["INSERT INTO r VALUES (50, 'x', 1)", "DELETE FROM r WHERE id < 3"],
    ),
    "through a view": Case(
        [KEYED, ROWS, "CREATE VIEW w AS SELECT id, city FROM r WHERE id > 5"],
        ["INSERT INTO w VALUES (60, 'x')", "UPDATE w SET city = 'y' WHERE id = 7", "DELETE FROM w WHERE id = 8"],
    ),
    "in a function": Case(
        [KEYED, ROWS],
        [
            "DO $$BEGIN FOR i IN 100..110 LOOP BEGIN INSERT INTO r VALUES (i, 'x', 1); "
            "IF i % 2 = 0 THEN RAISE 'no'; END IF; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END$$"
        ],
    ),
    "as a replica": Case(
        [KEYED, ROWS], ["BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM r WHERE id < 5; COMMIT"]
    ),
    "two-phase commit": Case(
        [KEYED, ROWS],
        [
            "BEGIN; DELETE FROM r WHERE id = 1; PREPARE TRANSACTION 'one'",
            "INSERT INTO r VALUES (70, 'x', 1)",
            "COMMIT PREPARED 'one'",
        ],
    ),
    "two-phase rollback": Case(
        [KEYED, ROWS], ["BEGIN; DELETE FROM r WHERE id = 1; PREPARE TRANSACTION 'two'", "ROLLBACK PREPARED 'two'"]
    ),
    "generated columns": Case(
        [
            "CREATE TABLE r (id int PRIMARY KEY, a int, stored int GENERATED ALWAYS AS (a * 2) STORED, "
            'computed text GENERATED ALWAYS AS ("Quoted ""Name""" || a) VIRTUAL, "Quoted ""Name""" text, '
            "serial bigint GENERATED ALWAYS AS IDENTITY)",
            'INSERT INTO r (id, a, "Quoted ""Name""") VALUES (1, 1, \'x\'), (2, NULL, \'y\')',
        ],
        [
            "INSERT INTO r (id, a) VALUES (3, 3)",
            'UPDATE r SET a = 7, "Quoted ""Name""" = \'z\' WHERE id < 3',
            "TRUNCATE r",
        ],
    ),
    "dropped columns": Case(
        [
            "CREATE TABLE r (gone int, id int PRIMARY KEY, gone_too text, v text DEFAULT 'd')",
            "ALTER TABLE r DROP COLUMN gone",
            "INSERT INTO r VALUES (1, 'x', 'y')",
            "ALTER TABLE r DROP COLUMN gone_too",
        ],
        ["INSERT INTO r VALUES (2)", "UPDATE r SET v = 'w'"],
    ),
    "partitions": Case(
        PARTITIONED,
        [
            "INSERT INTO r SELECT g, 'new' FROM generate_series(2, 2000, 90) AS g",
            "UPDATE r SET id = id + 77 WHERE id IN (51, 951, 1951)",
            "DELETE FROM r WHERE id % 4 = 3",
            "INSERT INTO r_low VALUES (7, 'direct')",
            "UPDATE r_high SET city = 'direct'",
            "DELETE FROM r_rest WHERE id < 1500",
            "COPY r_low FROM PROGRAM 'printf \"9\\tcopied\\n\"'",
            "MERGE INTO r USING generate_series(1, 300, 7) AS s(id) ON r.id = s.id WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'merged')",
        ],
    ),
    "TRUNCATE of a partitioned table": Case(PARTITIONED, ["TRUNCATE r", "INSERT INTO r VALUES (1, 'x')"]),
    "TRUNCATE of partitions": Case(PARTITIONED, ["TRUNCATE r_low", "TRUNCATE r_rest", "INSERT INTO r VALUES (1, 'x')"]),
    "TRUNCATE while another has the name": Case(
        [KEYED, ROWS],
        [
            "ALTER TABLE r RENAME TO hidden",
            "CREATE TABLE r (LIKE hidden)",
            "TRUNCATE hidden",
            "DROP TABLE r",
            "ALTER TABLE hidden RENAME TO r",
        ],
    ),
    "TRUNCATE uncommitted": Case([KEYED, ROWS], ["BEGIN ISOLATION LEVEL READ UNCOMMITTED; TRUNCATE r; COMMIT"]),
    "TRUNCATE twice": Case(
        [KEYED, ROWS], ["BEGIN; TRUNCATE r; INSERT INTO r VALUES (1, 'x', 1); TRUNCATE r; COMMIT", ROWS]
    ),
    "TRUNCATE ONLY": Case([KEYED, ROWS], ["TRUNCATE ONLY r"]),
    "a cascade into partitions": Case(
        [
            *PARENT_AND_CHILD,
            "CREATE TABLE r (id int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, v int) "
            "PARTITION BY HASH (v)",
            "CREATE TABLE r_0 PARTITION OF r FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
            "CREATE TABLE r_1 PARTITION OF r FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
            "INSERT INTO r SELECT g % 5 + 1, g FROM generate_series(1, 30) AS g",
        ],
        ["DELETE FROM parent WHERE id < 3", "UPDATE parent SET id = 44 WHERE id = 4"],
        ("r", "parent"),
    ),
    "long values": Case(
        ["CREATE TABLE r (id int PRIMARY KEY, v text)", "INSERT INTO r VALUES (1, repeat('long ', 2000000))"],
        [
            "UPDATE r SET id = 2",
            "INSERT INTO r SELECT 3, string_agg(md5(g::text), '') FROM generate_series(1, 9000) AS g",
        ],
    ),
    "names that functions have": Case(
        [
            "CREATE TABLE r (found bool, new text, old text, tg_op text, tg_relid int, tg_argv text, sqlerrm text, "
            "captured_row text, new_rows text, old_rows text, t int, d int, serial int, a int)"
        ],
        [
            "INSERT INTO r VALUES (true, 'n', 'o', 'op', 1, 'v', 'e', 'c', 'n', 'o', 1, 2, 3, 4)",
            "UPDATE r SET found = NOT found",
            "INSERT INTO r (tg_relid) VALUES (7)",
            "DELETE FROM r WHERE tg_relid = 1",
            "TRUNCATE r",
            "INSERT INTO r (tg_relid) VALUES (8)",
        ],
    ),
    "nothing but nulls": Case(
        ["CREATE TABLE r (v text)", "INSERT INTO r VALUES (NULL)"], ["INSERT INTO r VALUES (NULL), ('')"]
    ),
}


@pytest.fixture
def source(lab: PostgresLab) -> Iterator[Source]:
    source = connect(lab.url)
    yield source
    source.close()


@pytest.mark.conforms("M1", "M2")
@pytest.mark.parametrize("name", CASES)
def test_all_ways_to_change_rows_are_captured(lab: PostgresLab, source: Source, name: str) -> None:
    case = CASES[name]
    lab.execute(*case.before)
    tables = source.describe(case.tables)
    source.install(tables)
    before = {table: state(lab, table) for table in case.tables}
    with source.first_state(tables) as first:
        for table in tables:
            read = (b for part in first.slices(table, 3) for b in first.read(part))
            assert Counter(hashable(row.values()) for b in read for row in b.to_pylist()) == before[table.name]
    lab.execute(*case.statements)
    captured = source.capture(tables)
    for table in case.tables:
        assert plus(before[table], net(captured, table=table)) == state(lab, table)
    assert source.check(tables, installed=True) == []
    source.acknowledge(tables, captured.taken)
    assert source.capture(tables).rows == 0


def state(lab: PostgresLab, table: str) -> Counter[Row]:
    return Counter(hashable(row) for row in lab.asked(f"SELECT * FROM {table}"))


@pytest.mark.conforms("M6")
def test_a_prepared_transaction_is_captured_when_it_is_committed(lab: PostgresLab, source: Source) -> None:
    lab.execute(KEYED, ROWS)
    tables = source.describe(["r"])
    source.install(tables)
    lab.execute("BEGIN; DELETE FROM r WHERE id = 1; PREPARE TRANSACTION 'late'")
    lab.execute("DELETE FROM r WHERE id = 2")
    first = source.capture(tables)
    assert first.changes["r"]["id"].to_pylist() == [2]
    assert source.waiting(tables).oldest_open is not None
    lab.execute("COMMIT PREPARED 'late'")
    source.acknowledge(tables, first.taken)
    assert source.capture(tables).changes["r"]["id"].to_pylist() == [1]


@pytest.mark.conforms("M6")
def test_sets_hold_with_many_transactions_open(lab: PostgresLab, source: Source) -> None:
    """Ids that are open, rolled back, read-only and committed, in between one another."""
    lab.execute("CREATE TABLE r (id int)")
    tables = source.describe(["r"])
    source.install(tables)
    writers = [psycopg.connect(lab.users_url) for _ in range(8)]
    for number, writer in enumerate(writers):
        writer.execute("INSERT INTO r VALUES (%s)", [number])
    seen: list[int] = []
    for order in ((1, 4), (0, 7), (), (3,), (2, 5, 6)):
        for number in order:
            (writers[number].rollback if number in (4, 3) else writers[number].commit)()
        captured = source.capture(tables)
        seen += captured.changes["r"]["id"].to_pylist() if captured.rows else []
        source.acknowledge(tables, captured.taken)
    assert sorted(seen) == [0, 1, 2, 5, 6, 7]
    for writer in writers:
        writer.close()
