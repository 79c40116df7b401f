"""What is refused before capture, noticed after it, and left behind by it; and the role with the fewest privileges."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pymysql
import pytest
from tests.sources.contract import asked, captured_from_here, ids, now, read
from tests.sources.documented import SCHEMA, privileges
from tests.sources.mariadb.lab import MariadbLab
from tests.waiting import wait_until

from matview.errors import (
    BadSourceUrl,
    CannotCapture,
    CaptureBypassed,
    MatviewError,
    PrivilegeMissing,
    SourceTableUnknown,
    SourceUnreachable,
    TypeNotCarried,
)
from matview.sources import Source, connect
from matview.sources.mariadb.objects import TRIGGER_MODE

REFUSED = {
    "a view": (("CREATE TABLE u (id INT)", "CREATE VIEW t AS SELECT id FROM u"), "view"),
    "a sequence": (("CREATE SEQUENCE t",), "sequence"),
    "an engine without transactions": (("CREATE TABLE t (id INT) ENGINE = MyISAM",), "MyISAM"),
    "another one": (("CREATE TABLE t (id INT) ENGINE = Aria",), "Aria"),
    "partitions": (("CREATE TABLE t (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",), "partition"),
    "versions": (("CREATE TABLE t (id INT) WITH SYSTEM VERSIONING",), "versioned"),
    "a column of our own": (("CREATE TABLE t (id INT, __NUMBER INT)",), "__number"),
    "rows that go with others": (
        (
            "CREATE TABLE p (id INT PRIMARY KEY)",
            "CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY gone (p) REFERENCES p (id) ON DELETE CASCADE)",
        ),
        "foreign key",
    ),
    "a unique index with nulls, and no key": (("CREATE TABLE t (id INT UNIQUE)",), "primary key"),
    "a foreign key, and no key": (
        ("CREATE TABLE p (id INT PRIMARY KEY)", "CREATE TABLE t (p INT, FOREIGN KEY (p) REFERENCES p (id))"),
        "primary key",
    ),
    "rows that lose what they refer to": (
        (
            "CREATE TABLE p (id INT PRIMARY KEY)",
            "CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON UPDATE SET NULL)",
        ),
        "foreign key",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_captured_is_refused(lab: MariadbLab, source: Source, what: str) -> None:
    statements, match = REFUSED[what]
    lab.execute(*statements)
    before = lab.objects()
    with pytest.raises(CannotCapture, match=f"(?s){match}"):
        source.install(source.describe(["t"]))
    assert lab.objects() == before


def test_who_is_referred_to_is_captured(lab: MariadbLab, source: Source) -> None:
    """A cascade does not change the table that it begins at."""
    lab.execute(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
        "CREATE TABLE r (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id))",
        "INSERT INTO t VALUES (1), (2)",
        "INSERT INTO c VALUES (1, 1)",
    )
    tables = captured_from_here(source, "t", "r")
    lab.execute("DELETE FROM t WHERE id = 1")
    assert ids(source.capture(tables).changes["t"]) == [1]


# after it -------------------------------------------------------------------------------------------------------------

LATER = {
    "truncated": (("TRUNCATE TABLE t",), "was truncated"),
    "truncated without checks": (("SET foreign_key_checks = 0", "TRUNCATE TABLE t"), "was truncated"),
    "a column dropped and made again at once": (
        ("ALTER TABLE t DROP COLUMN b, ADD COLUMN b VARCHAR(20) DEFAULT 'new'",),
        "was altered",
    ),
    "a trigger dropped": (("DROP TRIGGER matview_1_delete",), "triggers"),
    "a trigger made otherwise": (
        ("DROP TRIGGER matview_1_delete", "CREATE TRIGGER matview_1_delete AFTER DELETE ON t FOR EACH ROW SET @a = 1"),
        "triggers",
    ),
    "a trigger made again, letter by letter": ((), "triggers"),
    "a delta table dropped": (("DROP TABLE {own}.update_added_1",), "changes of t are gone"),
    "a delta table made again": (
        (
            "CREATE TABLE {own}.again LIKE {own}.insert_added_1",
            "DROP TABLE {own}.insert_added_1",
            "RENAME TABLE {own}.again TO {own}.insert_added_1",
        ),
        "not as made",
    ),
    "a delta table without transactions": (("ALTER TABLE {own}.insert_added_1 ENGINE = Aria",), "not as made"),
    "numbers begun again": (
        ("DROP SEQUENCE {own}.added_numbers_1", "CREATE SEQUENCE {own}.added_numbers_1 ENGINE = InnoDB"),
        "not as made",
    ),
    "all of it dropped": (("DROP DATABASE {own}",), "not captured"),
}


@pytest.mark.conforms("M1")
@pytest.mark.parametrize("what", LATER)
def test_what_happens_to_capture_is_noticed_and_never_mended_in_silence(
    lab: MariadbLab, source: Source, what: str
) -> None:
    statements, match = LATER[what]
    lab.execute("CREATE TABLE t (id INT PRIMARY KEY, b VARCHAR(20))", "INSERT INTO t VALUES (1, 'x')")
    wait_until(lambda: is_from_an_earlier_second(lab))
    tables = captured_from_here(source, "t")
    own = "matview_" + lab.url.partition("?")[0].rpartition("/")[2]
    if statements:
        lab.execute(*(statement.replace("{own}", own) for statement in statements))
    else:
        make_again(lab, "matview_1_delete")
    (problem,) = source.check(tables, installed=True)
    assert problem.table == "t"
    assert problem.help
    with pytest.raises(CaptureBypassed, match=match):
        source.capture(tables)
    if "dropped" not in what or "trigger" in what:
        with pytest.raises(MatviewError):
            source.install(tables)
    source.remove(tables)
    assert source.check(source.describe(["t"]), installed=False) == []


@pytest.mark.conforms("M1")
@pytest.mark.parametrize("told", ["", "SET max_error_count = 0"], ids=["told", "not told"])
def test_what_cannot_be_recorded_is_noted(lab: MariadbLab, source: Source, told: str) -> None:
    """Here since somebody has put a row into a delta table; the user's write goes on."""
    lab.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    tables = captured_from_here(source, "t")
    lab.execute(f"INSERT INTO matview_{lab.name}.insert_added_1 (__number, __connection) VALUES (1, 0)")
    lab.execute(*([told] if told else []), "INSERT INTO t VALUES (7)")
    assert lab.rows("t", ["id"]) == [(7,)]
    with pytest.raises(CaptureBypassed, match="could not be recorded: " + ("for a reason" if told else "Duplicate")):
        source.capture(tables)
    source.remove(tables)


def make_again(lab: MariadbLab, trigger: str) -> None:
    writer = lab.writer()
    writer.execute(f"SET sql_mode = '{TRIGGER_MODE}'")
    ((_, _, statement, *_),) = writer.execute(f"SHOW CREATE TRIGGER {trigger}")  # type: ignore[misc]
    writer.execute(f"DROP TRIGGER {trigger}")
    writer.execute(statement)
    writer.close()


def is_from_an_earlier_second(lab: MariadbLab) -> bool:
    """Whether an alteration from now on would show: its time is kept in seconds."""
    writer = lab.writer()
    rows = writer.execute("SELECT CREATE_TIME < NOW() FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()")
    writer.close()
    return rows == ((1,),)


@pytest.mark.conforms("M1")
def test_all_or_none(lab: MariadbLab, source: Source) -> None:
    lab.execute(
        "CREATE TABLE one (id INT PRIMARY KEY)",
        "CREATE TABLE two (id INT PRIMARY KEY)",
        "CREATE TRIGGER matview_2_insert BEFORE UPDATE ON two FOR EACH ROW SET @a = 1",
    )
    before = lab.objects()
    with pytest.raises(MatviewError, match="exists"):
        source.install(source.describe(["one", "two"]))
    assert lab.objects() == before
    lab.execute("INSERT INTO one VALUES (1)", "INSERT INTO two VALUES (1)")


def test_what_was_left_half_done_is_done_anew(lab: MariadbLab, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies in the middle of installing leaves a table that is registered and not ready."""
    lab.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    before, tables = lab.objects(), source.describe(["t"])
    with monkeypatch.context() as patch:
        patch.setattr("matview.sources.mariadb.install.remove", lambda *_: None)
        patch.setattr("matview.sources.mariadb.install.triggers_made", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            source.install(tables)
    with pytest.raises(CaptureBypassed):
        source.capture(tables)
    source.install(tables)
    lab.execute("INSERT INTO t VALUES (1)")
    assert ids(source.capture(tables).changes["t"]) == [1]
    source.remove(tables)
    assert lab.objects() == before


def test_installing_waits_for_long_transactions_and_lets_others_pass(lab: MariadbLab, source: Source) -> None:
    """Whoever wrote before the triggers were there has ended when they all are: the first state has it."""
    lab.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    tables = source.describe(["t"])
    slow, other = lab.writer(), lab.writer()
    slow.begin()
    slow.execute("INSERT INTO t VALUES (2)")
    thread = threading.Thread(target=source.install, args=(tables,))
    thread.start()
    wait_until(lambda: "matview" in str(lab.objects()))
    for number in range(10, 20):
        other.execute(f"INSERT INTO t VALUES ({number})")
    assert thread.is_alive()
    slow.commit()
    slow.close()
    other.close()
    thread.join(30)
    with source.first_state(tables) as state:
        assert read(state, tables[0]) == now(lab, "t", ["id"])
    lab.execute("DELETE FROM t")
    source.acknowledge(tables, state.taken)
    assert len(ids(source.capture(tables).changes["t"])) == 12


# roles and connections ------------------------------------------------------------------------------------------------


def own_of(name: str) -> str:
    """The database of what is captured, as GRANT names it."""
    return f"own_{name}".replace("_", r"\_")


@pytest.fixture
def role(lab: MariadbLab) -> Iterator[MariadbLab]:
    """The lab as a role sees it that may do what docs/reference/sources.md says, and no more."""
    name = lab.url.partition("?")[0].rpartition("/")[2]
    names = {"shop": name, "capture": "matview_role@localhost", SCHEMA.replace("_", r"\_"): own_of(name)}
    granted = privileges("MariaDB", **names)
    assert len(granted) == 3
    lab.execute("CREATE OR REPLACE USER matview_role@localhost IDENTIFIED BY 'pass-word'", *granted)
    own = own_of(name).replace("\\", "")
    yield MariadbLab(f"{lab.url.replace('root@', 'matview_role:pass-word@')}&matview_schema={own}")
    lab.execute("DROP USER matview_role@localhost")


@pytest.mark.conforms("M1")
def test_the_role_with_the_fewest_privileges(lab: MariadbLab, role: MariadbLab) -> None:
    lab.execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9))", "INSERT INTO t VALUES (1, 'x')")
    before, source = lab.objects(), connect(role.url)
    tables = source.describe(["t"])
    assert source.check(tables, installed=False) == []
    source.install(tables)
    lab.execute("UPDATE t SET name = 'y'")
    with source.first_state(tables) as state:
        assert read(state, tables[0]) == now(lab, "t", ["id", "name"])
    source.acknowledge(tables, state.taken)
    lab.execute("INSERT INTO t VALUES (2, 'z')")
    captured = source.capture(tables)
    lab.execute("DELETE FROM t WHERE id = 1")
    assert sum(asked(source, "SELECT id FROM t", tables, captured.taken).values()) == 2
    with pytest.raises(pymysql.err.OperationalError, match="denied"):
        role.execute("DELETE FROM t")
    source.remove(tables)
    assert lab.objects() == before


@pytest.mark.parametrize(
    ("taken_away", "missing"),
    [
        ("TRIGGER ON {name}.*", "TRIGGER"),
        ("ALL ON `{own}`.*", "CREATE"),
        ("PROCESS ON *.*", "PROCESS"),
        ("SELECT ON {name}.*", "SELECT"),
    ],
)
def test_a_privilege_that_is_missing_is_named(lab: MariadbLab, role: MariadbLab, taken_away: str, missing: str) -> None:
    name = lab.url.partition("?")[0].rpartition("/")[2]
    own = own_of(name)
    lab.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    tables = connect(lab.url).describe(["t"])
    before = lab.objects()
    lab.execute(f"REVOKE {taken_away.format(name=name, own=own)} FROM matview_role@localhost")
    with pytest.raises(PrivilegeMissing, match=missing) as caught:
        connect(role.url).install(tables)
    assert "GRANT" in caught.value.help
    assert "pass-word" not in str(caught.value)
    assert lab.objects() == before


def test_a_privilege_that_comes_by_a_role(lab: MariadbLab, role: MariadbLab) -> None:
    name = lab.url.partition("?")[0].rpartition("/")[2]
    lab.execute(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        f"REVOKE TRIGGER ON {name}.* FROM matview_role@localhost",
        "CREATE OR REPLACE ROLE matview_capture",
        f"GRANT TRIGGER ON {name}.t TO matview_capture",
        "GRANT matview_capture TO matview_role@localhost",
        "SET DEFAULT ROLE matview_capture FOR matview_role@localhost",
    )
    source = connect(role.url)
    assert source.check(source.describe(["t"]), installed=False) == []
    lab.execute("DROP ROLE matview_capture")


def test_connections_that_come_to_nothing(lab: MariadbLab, role: MariadbLab) -> None:
    with pytest.raises(SourceUnreachable) as caught:
        connect(role.url.replace("pass-word", "wrong-word"))
    assert "wrong-word" not in str(caught.value) + repr(caught.value.__cause__)
    with pytest.raises(SourceUnreachable):
        connect("mariadb://root@localhost/x?unix_socket=/nowhere/socket")
    with pytest.raises(BadSourceUrl, match="database"):
        connect(lab.url.replace(lab.url.partition("?")[0].rpartition("/")[2], ""))
    with pytest.raises(BadSourceUrl, match="colour"):
        connect(f"{lab.url}&colour=blue")
    assert "pass-word" not in repr(connect(role.url)) + repr(connect(role.url).database)  # type: ignore[attr-defined]


def test_a_connection_that_is_cut(lab: MariadbLab, source: Source) -> None:
    lab.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    tables = captured_from_here(source, "t")
    with source.first_state(tables) as state:
        for connection in list(state.free.queue):  # type: ignore[attr-defined]
            lab.execute(f"KILL {connection.thread_id()}")
        with pytest.raises(SourceUnreachable):
            read(state, tables[0])
    with source.first_state(tables) as state:
        assert read(state, tables[0]) == now(lab, "t", ["id"])


def test_names(lab: MariadbLab, source: Source) -> None:
    lab.execute("CREATE TABLE `Big One` (id INT PRIMARY KEY)")
    name = lab.url.partition("?")[0].rpartition("/")[2]
    assert [t.name for t in source.describe(['"Big One"', f'{name}."Big One"'])] == ['"Big One"'] * 2
    with pytest.raises(SourceTableUnknown):
        source.describe(["mysql.user"])


# values ---------------------------------------------------------------------------------------------------------------

ZEROS = {
    "no day at all": ("DATE", "'0000-00-00'"),
    "no month": ("DATE", "'2024-00-01'"),
    "no such day": ("DATE", "'2023-02-29'"),
    "no day, with a time": ("DATETIME", "'0000-00-00 00:00:00'"),
    "the first moment of all": ("TIMESTAMP NULL", "0"),
}


@pytest.mark.parametrize("what", ZEROS)
def test_days_that_are_none(lab: MariadbLab, source: Source, what: str) -> None:
    """They are written as before, and named when they are read."""
    declaration, literal = ZEROS[what]
    lab.execute(f"CREATE TABLE odd (id INT PRIMARY KEY, v {declaration})")
    tables = captured_from_here(source, "odd")
    lab.execute("SET sql_mode = 'ALLOW_INVALID_DATES'", f"INSERT INTO odd VALUES (42, {literal})")
    with pytest.raises(TypeNotCarried, match="column 'v' of odd, id 42"):
        source.capture(tables)
    with source.first_state(tables) as state, pytest.raises(TypeNotCarried, match="column 'v' of odd, id 42"):
        read(state, tables[0])


def test_names_that_capture_cannot_have(lab: MariadbLab) -> None:
    for name in ("2nd", "a'b", lab.url.partition("?")[0].rpartition("/")[2]):
        with pytest.raises(BadSourceUrl):
            connect(f"{lab.url}&matview_schema={name}")
