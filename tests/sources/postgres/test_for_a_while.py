"""What changes and changes back between two rounds: either the rows are right, or the table is stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from tests.sources.postgres.lab import PostgresLab

from matview.errors import CaptureBypassed
from matview.sources import connect
from matview.sources.engine import Source

PARTITIONED = (
    "CREATE TABLE r (k int, v text) PARTITION BY LIST (k)",
    "CREATE TABLE r_1 PARTITION OF r FOR VALUES IN (1)",
    "INSERT INTO r VALUES (1, 'a')",
)
PLAIN = ("CREATE TABLE r (k int NOT NULL, v text)", "INSERT INTO r VALUES (1, 'a')")
LATE = (
    "CREATE TABLE other (k int)",
    "CREATE FUNCTION writes() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN INSERT INTO r VALUES (9, ''late''); RETURN NULL; END'",
)
NOTICED: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "a partition made, written through the root and dropped": (
        PARTITIONED,
        ["CREATE TABLE r_2 PARTITION OF r FOR VALUES IN (2)", "INSERT INTO r VALUES (2, 'b')", "DROP TABLE r_2"],
    ),
    "a row moved into a partition that is detached": (
        PARTITIONED,
        [
            "CREATE TABLE r_2 PARTITION OF r FOR VALUES IN (2)",
            "UPDATE r SET k = 2",
            "ALTER TABLE r DETACH PARTITION r_2",
        ],
    ),
    "a partition of a partition made, written and dropped": (
        [*PARTITIONED[:1], "CREATE TABLE r_1 PARTITION OF r FOR VALUES IN (1, 2) PARTITION BY LIST (k)"],
        ["CREATE TABLE r_2 PARTITION OF r_1 FOR VALUES IN (2)", "INSERT INTO r VALUES (2, 'b')", "DROP TABLE r_2"],
    ),
    "a partition lent to another table": (
        PARTITIONED,
        [
            "ALTER TABLE r DETACH PARTITION r_1",
            "CREATE TABLE o (LIKE r) PARTITION BY LIST (k)",
            "ALTER TABLE o ATTACH PARTITION r_1 FOR VALUES IN (1)",
            "INSERT INTO o VALUES (1, 'unseen')",
            "ALTER TABLE o DETACH PARTITION r_1",
            "ALTER TABLE r ATTACH PARTITION r_1 FOR VALUES IN (1)",
        ],
    ),
    "the table a partition of another": (
        PLAIN,
        [
            "CREATE TABLE o (LIKE r) PARTITION BY LIST (k)",
            "ALTER TABLE o ATTACH PARTITION r FOR VALUES IN (1)",
            "UPDATE o SET v = 'unseen'",
            "ALTER TABLE o DETACH PARTITION r",
        ],
    ),
    "the table a child of another": (
        PLAIN,
        [
            "CREATE TABLE o (LIKE r)",
            "ALTER TABLE r INHERIT o",
            "UPDATE o SET v = 'unseen'",
            "ALTER TABLE r NO INHERIT o",
        ],
    ),
    "the table a parent": (
        PLAIN,
        [
            "CREATE TABLE o () INHERITS (r)",
            "INSERT INTO o VALUES (2, 'b')",
            "UPDATE r SET v = 'of a child'",
            "DROP TABLE o",
        ],
    ),
    "names of columns exchanged": (
        ["CREATE TABLE r (k int, a text, b text)"],
        [
            "ALTER TABLE r RENAME a TO c",
            "ALTER TABLE r RENAME b TO a",
            "ALTER TABLE r RENAME c TO b",
            "INSERT INTO r VALUES (1, 'a', 'b')",
            "ALTER TABLE r RENAME b TO c",
            "ALTER TABLE r RENAME a TO b",
            "ALTER TABLE r RENAME c TO a",
        ],
    ),
    "a trigger of another table writes at TRUNCATE": (
        [*PLAIN, *LATE, "CREATE TRIGGER x BEFORE TRUNCATE ON other EXECUTE FUNCTION writes()"],
        ["TRUNCATE r, other"],
    ),
    "a trigger with a later name writes at TRUNCATE": (
        [*PLAIN, *LATE, 'CREATE TRIGGER "über" BEFORE TRUNCATE ON r EXECUTE FUNCTION writes()'],
        ["TRUNCATE r"],
    ),
}


@pytest.fixture
def source(lab: PostgresLab) -> Iterator[Source]:
    source = connect(lab.url)
    yield source
    source.close()


@pytest.mark.parametrize("name", NOTICED)
def test_what_was_otherwise_for_a_while_stops_the_table(lab: PostgresLab, source: Source, name: str) -> None:
    before, statements = NOTICED[name]
    lab.execute(*before)
    tables = source.describe(["r"])
    source.install(tables)
    assert source.capture(tables).rows == 0
    lab.execute(*statements)
    with pytest.raises(CaptureBypassed, match=r"\br:"):
        source.capture(tables)
    source.remove(tables)
    source.install(source.describe(["r"]))
    lab.execute("ANALYZE r")
    assert source.capture(source.describe(["r"])).rows == 0


def test_maintenance_of_a_partitioned_table_stops_nothing(lab: PostgresLab, source: Source) -> None:
    lab.execute(*PARTITIONED)
    tables = source.describe(["r"])
    source.install(tables)
    lab.execute("VACUUM (FREEZE) pg_catalog.pg_inherits", "VACUUM (FREEZE) pg_catalog.pg_attribute")
    lab.execute("VACUUM FULL r_1", "ANALYZE r", "GRANT SELECT ON r TO PUBLIC", "CREATE INDEX ON r (k)", "TRUNCATE r")
    lab.execute("INSERT INTO r VALUES (1, 'b')")
    assert source.capture(tables).rows == 2
