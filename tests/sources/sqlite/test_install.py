"""What is refused before capture, noticed after it, and left behind by it."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.sources.contract import captured_from_here, ids
from tests.sources.sqlite.lab import SqliteLab

from matview.errors import (
    BadSourceUrl,
    CannotCapture,
    CaptureBypassed,
    MatviewError,
    PrivilegeMissing,
    SourceDrifted,
    SourceTableUnknown,
    SourceUnreachable,
)
from matview.sources import Source, connect
from matview.sources.sqlite.uniques import index_parts

REFUSED = {
    "a view": (("CREATE TABLE u (id INTEGER)", "CREATE VIEW t AS SELECT id FROM u"), "view"),
    "a virtual table": (("CREATE VIRTUAL TABLE t USING fts5(id)",), "virtual"),
    "a shadow of a virtual table": (("CREATE VIRTUAL TABLE x USING fts5(id)", "CREATE VIEW t AS SELECT 1"), "view"),
    "a column of our own": (("CREATE TABLE t (id INTEGER, __ROW INTEGER)",), "__row"),
    "no name left for the rowid": (("CREATE TABLE t (rowid INTEGER, oid INTEGER, _rowid_ INTEGER)",), "rowid"),
    "a default that nobody can foresee": (
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP UNIQUE)",),
        "CURRENT_TIMESTAMP",
    ),
    "a unique generated column beside a default": (
        ("CREATE TABLE t (a INTEGER NOT NULL DEFAULT 1, b INTEGER AS (a + 1) UNIQUE)",),
        "generated",
    ),
    "a BEFORE trigger that writes to the table": (
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY)",
            "CREATE TRIGGER g BEFORE INSERT ON t BEGIN INSERT OR IGNORE INTO t VALUES (NEW.id + 1); END",
        ),
        "trigger",
    ),
    "one that says neither BEFORE nor AFTER, and writes there on a detour": (
        (
            "CREATE TABLE t (id INTEGER PRIMARY KEY)",
            "CREATE TABLE u (id INTEGER)",
            "CREATE TRIGGER g UPDATE OF id ON t BEGIN INSERT INTO u VALUES (NEW.id); END",
            "CREATE TRIGGER h AFTER INSERT ON u BEGIN UPDATE t SET id = 1 WHERE id = 2; END",
        ),
        "trigger",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_captured_is_refused(lab: SqliteLab, source: Source, what: str) -> None:
    statements, match = REFUSED[what]
    lab.execute(*statements)
    before = lab.objects()
    with pytest.raises(CannotCapture, match=match):
        source.install(source.describe(["t"]))
    assert lab.objects() == before


def test_a_collation_of_the_users_program(lab: SqliteLab, source: Source) -> None:
    connection = sqlite3.connect(lab.path)
    connection.create_collation("ours", lambda a, b: (a > b) - (a < b))
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT COLLATE ours UNIQUE)")
    connection.close()
    with pytest.raises(CannotCapture, match="ours"):
        source.install(source.describe(["t"]))


def test_names_are_found_as_sqlite_finds_them(lab: SqliteLab, source: Source) -> None:
    lab.execute('CREATE TABLE "Big One" (id INTEGER PRIMARY KEY)')
    assert [t.name for t in source.describe(['"big one"', 'main."Big One"'])] == ['"Big One"'] * 2
    with pytest.raises(SourceTableUnknown):
        source.describe(["sqlite_schema"])
    with pytest.raises(SourceTableUnknown):
        source.describe(["other.big"])


# connecting -----------------------------------------------------------------------------------------------------------


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreachable, match="nowhere"):
        connect(f"sqlite:///{tmp_path}/nowhere.db")
    assert not (tmp_path / "nowhere.db").exists()
    (tmp_path / "text.db").write_text("not a database at all, but long enough to be taken for one " * 40)
    with pytest.raises(SourceUnreachable, match="not a database"):
        connect(f"sqlite:///{tmp_path}/text.db")
    with pytest.raises(BadSourceUrl, match="memory"):
        connect("sqlite:///:memory:")


def test_a_file_that_may_not_be_written(lab: SqliteLab, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    tables = source.describe(["t"])
    lab.path.chmod(stat.S_IRUSR)
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path).stat().st_mode & stat.S_IWUSR != 0)
    with pytest.raises(PrivilegeMissing, match="writable"):
        source.install(tables)
    (problem,) = source.check(tables, installed=False)
    assert "chmod" in problem.help


# after it -------------------------------------------------------------------------------------------------------------

LATER = {
    "a trigger dropped": (("DROP TRIGGER matview_after_delete_1",), CaptureBypassed, "matview_after_delete_1"),
    "a trigger dropped that only REPLACE needs": (("DROP TRIGGER matview_before_insert_1",), CaptureBypassed, "t"),
    "a trigger made otherwise": (
        (
            "DROP TRIGGER matview_after_delete_1",
            "CREATE TRIGGER matview_after_delete_1 AFTER DELETE ON t BEGIN SELECT 1; END",
        ),
        CaptureBypassed,
        "t",
    ),
    "a delta table dropped": (("DROP TABLE matview_added_1",), CaptureBypassed, "t"),
    "the register dropped": (("DROP TABLE matview_tables",), CaptureBypassed, "t"),
    "a column more": (("ALTER TABLE t ADD COLUMN more TEXT",), SourceDrifted, "'more' is new"),
    "a column renamed": (("ALTER TABLE t RENAME COLUMN b TO c",), SourceDrifted, "'b' is gone"),
    "a trigger before ours that writes to the table": (
        ("CREATE TRIGGER late AFTER UPDATE ON t BEGIN INSERT OR IGNORE INTO t (id) VALUES (NEW.id + 1); END",),
        SourceDrifted,
        "trigger",
    ),
}


@pytest.mark.conforms("M1")
@pytest.mark.parametrize("what", LATER)
def test_what_happens_to_capture_is_noticed_and_never_mended_in_silence(
    lab: SqliteLab, source: Source, what: str
) -> None:
    statements, error, match = LATER[what]
    lab.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b TEXT)")
    tables = captured_from_here(source, "t")
    lab.execute(*statements)
    (problem,) = source.check(tables, installed=True)
    assert problem.help
    with pytest.raises(error, match=match):
        source.capture(tables)
    if what != "the register dropped":
        with pytest.raises(MatviewError, match=match):
            source.install(tables)
    source.remove(tables)


def rebuilt(lab: SqliteLab, values: str) -> None:
    """As SQLite's own manual has it: a new table is filled, takes the place of the old one, and gets its triggers."""
    with closing(sqlite3.connect(lab.path)) as connection:
        made = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 't'").fetchall()
        connection.executescript(
            "BEGIN; CREATE TABLE new (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b TEXT); "
            f"INSERT INTO new SELECT {values} FROM t; DROP TABLE t; ALTER TABLE new RENAME TO t; "
            f"{''.join(f'{text}; ' for (text,) in made)} COMMIT;"
        )


@pytest.mark.conforms("M1")
def test_a_table_made_anew_with_all_its_triggers_is_noticed(lab: SqliteLab, source: Source) -> None:
    """Columns, indexes and triggers are what they were, and the rows are others."""
    lab.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b TEXT)", "INSERT INTO t VALUES (1, 1, 'x')")
    tables = captured_from_here(source, "t")
    rebuilt(lab, "id, a + 1, b")
    with pytest.raises(CaptureBypassed, match="made anew"):
        source.capture(tables)
    source.remove(tables)
    again = captured_from_here(source, "t")
    assert source.capture(again).rows == 0


@pytest.mark.parametrize(
    "what", ["VACUUM", "CREATE INDEX i ON u (n)", "ALTER TABLE u RENAME TO w", "DROP TABLE u", "REINDEX"]
)
def test_what_leaves_a_table_as_it_is(lab: SqliteLab, source: Source, what: str) -> None:
    lab.execute("CREATE TABLE u (n INTEGER)", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    tables = captured_from_here(source, "t")
    lab.execute(what)
    lab.execute("INSERT INTO t VALUES (2)")
    assert source.capture(tables).rows == 1


def test_a_trigger_before_ours_that_writes_elsewhere_is_nobodys_business(lab: SqliteLab, source: Source) -> None:
    lab.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", "CREATE TABLE log (id INTEGER)")
    tables = captured_from_here(source, "t")
    lab.execute("CREATE TRIGGER late BEFORE INSERT ON t BEGIN INSERT INTO log VALUES (NEW.id); END")
    assert source.check(tables, installed=True) == []


def test_columns_that_capture_reads_cannot_be_dropped(lab: SqliteLab, source: Source) -> None:
    lab.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT)")
    tables = captured_from_here(source, "t")
    with pytest.raises(sqlite3.OperationalError, match="matview"):
        lab.execute("ALTER TABLE t DROP COLUMN b")
    assert source.check(tables, installed=True) == []


@pytest.mark.conforms("M1")
def test_what_is_left_of_a_renamed_table_is_removed(lab: SqliteLab, source: Source) -> None:
    lab.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    tables = captured_from_here(source, "t")
    lab.execute("ALTER TABLE t RENAME TO u")
    source.remove(tables)
    assert lab.rows("sqlite_schema", ["name"]) == [("u",)]


def test_a_number_is_not_given_twice(lab: SqliteLab, source: Source) -> None:
    """Two tables, of which the first is removed; the second keeps what it has."""
    lab.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)", "CREATE TABLE two (id INTEGER PRIMARY KEY)")
    tables = captured_from_here(source, "one", "two")
    lab.execute("INSERT INTO one VALUES (1)", "INSERT INTO two VALUES (2)")
    source.remove(tables[:1])
    source.install(tables)
    assert ids(source.capture(tables).changes["two"]) == [2]
    assert "one" not in source.capture(tables).changes


# ways to write --------------------------------------------------------------------------------------------------------


def test_writers_by_another_name_of_the_database(lab: SqliteLab, source: Source, tmp_path: Path) -> None:
    lab.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    tables = captured_from_here(source, "t")
    connection = sqlite3.connect(tmp_path / "other.db", isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("ATTACH ? AS shop", (str(lab.path),))
    connection.execute("CREATE TABLE t (id INTEGER)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO shop.t VALUES (1), (2)")
    connection.execute("INSERT INTO main.t VALUES (3)")
    connection.execute("COMMIT")
    connection.close()
    assert ids(source.capture(tables).changes["t"]) == [1, 2]


def test_a_writer_in_another_process(lab: SqliteLab, source: Source) -> None:
    lab.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    tables = captured_from_here(source, "t")
    program = (
        "import sqlite3, sys\nconnection = sqlite3.connect(sys.argv[1])\n"
        "connection.execute('INSERT INTO t VALUES (1)')\nconnection.commit()\n"
        "connection.execute('INSERT INTO t VALUES (2)')\nimport os\nos._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(lab.path)], check=False).returncode == 9
    assert ids(source.capture(tables).changes["t"]) == [1]


def test_rows_that_go_with_others(lab: SqliteLab, source: Source) -> None:
    """A cascade fires the triggers of the table that refers."""
    lab.execute(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (id INTEGER PRIMARY KEY, p INTEGER REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO child VALUES (10, 1), (11, 1), (12, 2)",
    )
    tables = captured_from_here(source, "child")
    writer = lab.writer(foreign_keys="on")
    writer.execute("DELETE FROM parent WHERE id = 1")
    writer.execute("UPDATE parent SET id = 3")
    writer.execute("REPLACE INTO parent VALUES (3)")
    writer.close()
    assert lab.rows("child", ["id"]) == []
    changes = source.capture(tables).changes["child"]
    assert sorted(ids(changes)) == [10, 11, 12, 12, 12]


INDEXES = {
    "CREATE UNIQUE INDEX i ON t (a, b)": (["a", "b"], None),
    "create unique index \"o(d\" on t(lower(a), (b + 1) desc) where b > ')' and (c)": (
        ["lower(a)", "(b + 1)"],
        "b > ')' and (c)",
    ),
    "CREATE UNIQUE INDEX i ON t (a COLLATE NOCASE ASC -- , (\n, [b,] || 'x''(' /* ) */)": (
        ["a", "[b,] || 'x''('"],
        None,
    ),
    'CREATE UNIQUE INDEX i ON t (substr(a, 1, 2) COLLATE "RTRIM")\nWHERE\na IS NOT NULL;': (
        ["substr(a, 1, 2)"],
        "a IS NOT NULL",
    ),
}


@pytest.mark.parametrize("sql", INDEXES)
def test_the_terms_of_an_index(sql: str) -> None:
    assert index_parts(sql) == INDEXES[sql]


@pytest.mark.parametrize("option", ["matview_schema=2nd", "matview_schema=a'b", "mode=ro"])
def test_options_that_are_none(lab: SqliteLab, option: str) -> None:
    with pytest.raises(BadSourceUrl):
        connect(f"{lab.url}?{option}")
