"""`matview sql`: statements, files, formats, sessions. Needs Spark."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from matview.opening import open_catalog

from .conftest import Run, Shop

pytestmark = pytest.mark.usefixtures("spark")

BY_CITY = "SELECT city, sum(amount) AS total FROM sales GROUP BY city ORDER BY total"


# reading --------------------------------------------------------------------------------------------------------------


def test_a_query_reads_the_newest_version(shop: Shop, run: Run) -> None:
    ran = run("sql", "-w", shop.path, BY_CITY, "--format", "csv")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "city,total\nBergen; Bryggen,7.00\nOslo,17.50\n"


def test_a_session_reads_the_version_that_it_pinned(shop: Shop, run: Run) -> None:
    ran = run("sql", "-w", shop.path, BY_CITY, "--session", shop.before, "--format", "json")
    rows = [(row["city"], row["total"]) for row in json.loads(ran.out)]
    assert rows == [(None, "0.10"), ("Bergen; Bryggen", "7.00"), ("Oslo", "15.50")]
    with open_catalog(shop.path) as catalog:
        record = catalog.sessions.get(shop.before)
        assert record is not None
        assert record.closed_at is None, "the session outlives the command"
        assert record.heartbeat_at > record.opened_at, "and was kept alive by it"


@pytest.mark.parametrize("text", ["DELETE FROM sales", "BEGIN; SELECT 1", "CREATE TABLE other (id INT)"])
def test_a_session_only_reads(empty: str, run: Run, no_spark: None, text: str) -> None:
    with open_catalog(empty) as catalog:
        session = catalog.sessions.open("me", "table", 60).id
    ran = run("sql", "-w", empty, text, "--session", session)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error[MV102]: a reader session runs queries only\n")
    assert run("history", "-w", empty, "--json").out.strip() == "[]", "no transaction was even begun"


def test_a_table_is_drawn_for_people(shop: Shop, run: Run) -> None:
    out = run("sql", "-w", shop.path, "SELECT * FROM sales ORDER BY id").out
    assert "│ id │ city            │ amount │" in out
    assert "│  1 │ Oslo            │  13.50 │" in out


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_intervals_of_months_are_shown(format: str, shop: Shop, run: Run) -> None:
    query = "SELECT id, INTERVAL '1-2' YEAR TO MONTH AS same, INTERVAL '3' DAY AS same FROM sales WHERE id = 1"
    ran = run("sql", "-w", shop.path, query, "--format", format)
    assert ran.code == 0 and "INTERVAL '1-2' YEAR TO MONTH" in ran.out


def test_limit(shop: Shop, run: Run) -> None:
    ran = run("sql", "-w", shop.path, "SELECT id FROM sales ORDER BY id", "--format", "csv", "--limit", 2)
    assert ran.out == "id\n1\n2\n"
    assert "--limit" in ran.err
    ran = run("sql", "-w", shop.path, "SELECT id FROM sales ORDER BY id", "--limit", 0)
    assert ran.err == ""


def test_every_row_of_csv_comes_without_a_limit(shop: Shop, run: Run) -> None:
    query = "SELECT a.id, b.id, c.id FROM sales a, sales b, sales c, (SELECT explode(sequence(1, 50)) AS n) AS d"
    rows = list(csv.reader(io.StringIO(run("sql", "-w", shop.path, query, "--format", "csv").out)))
    assert len(rows) == 1 + 27 * 50


@pytest.mark.parametrize("options", [(), ("--file", "-"), ("-f", "-")], ids=" ".join)
def test_statements_from_stdin(shop: Shop, run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS a;\nSELECT * FROM nope"))
    ran = run("sql", "-w", shop.path, *options, "--format", "csv")
    assert ran.code == 1
    assert ran.out == "a\n1\n"
    assert "--> <stdin>:2:15" in ran.err


def test_tables_and_columns_need_no_spark(shop: Shop, run: Run, no_spark: None) -> None:
    ran = run("sql", "-w", shop.path, "SHOW TABLES; DESCRIBE sales", "--format", "csv")
    assert ran.code == 0
    assert 'sales,"id, city, amount",id,2' in ran.out
    assert 'amount,"decimal(12,2)",true,false' in ran.out


# errors ---------------------------------------------------------------------------------------------------------------


def test_an_error_has_a_place_and_a_caret(shop: Shop, run: Run) -> None:
    ran = run("sql", "-w", shop.path, "SELECT *\n  FROM nope")
    assert (ran.code, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith("error[MV103]: there is no table 'nope'")
    assert lines[1:] == ["  --> <sql>:2:8", "   |   FROM nope", "   |        ^", "  help: tables: sales, visits"]


def test_what_spark_refuses_is_an_error_of_ours(shop: Shop, run: Run) -> None:
    ran = run("sql", "-w", shop.path, "SELECT nope FROM sales")
    assert ran.code == 1
    assert ran.err.startswith("error[MV104]: ")
    assert "Traceback" not in ran.err


def test_what_fails_while_rows_are_read_is_an_error_of_ours(shop: Shop, run: Run) -> None:
    for tokens in (("--format", "csv"), ()):
        ran = run("sql", "-w", shop.path, "SELECT CAST(city AS INT) FROM sales", *tokens)
        assert ran.code == 1
        assert ran.err.startswith("error[MV204]: ")


@pytest.mark.parametrize(
    "tokens",
    [
        ("SELECT 1", "--file", "x.sql"),
        ("--file", "missing.sql"),
        (" ",),
        ("SELECT 1", "--format", "xml"),
        ("SELECT 1", "--limit", "-1"),
    ],
    ids=" ".join,
)
def test_usage(empty: str, run: Run, no_spark: None, tokens: tuple[str, ...]) -> None:
    ran = run("sql", "-w", empty, *tokens)
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize("session", ["nobody", "closed", "silent"])
def test_sessions_that_cannot_be_read_in(empty: str, run: Run, no_spark: None, session: str) -> None:
    with open_catalog(empty) as catalog:
        closed, silent = catalog.sessions.open("me", "table", 60).id, catalog.sessions.open("me", "table", 1e-6).id
        catalog.sessions.close(closed)
    named = {"nobody": "nobody", "closed": closed, "silent": silent}[session]
    ran = run("sql", "-w", empty, "SELECT 1", "--session", named)
    assert ran.code == 1
    assert ran.err.startswith("error[MV301]: " if session == "silent" else "error[MV302]: ")


# changing -------------------------------------------------------------------------------------------------------------


def test_a_file_stops_at_its_first_error(empty: str, run: Run, elsewhere: Path) -> None:
    """The first two stand, the third is told with its place, the fourth is not run."""
    (elsewhere / "f.sql").write_text(
        "CREATE TABLE t (id INT, PRIMARY KEY (id));\nINSERT INTO t VALUES (1), (2);\n"
        "-- the third\n  INSERT INTO t VALUES (3), (1);\nDELETE FROM t;\n"
    )
    ran = run("sql", "-w", empty, "--file", "f.sql")
    assert ran.code == 1
    assert ran.out == "created table t (version 2)\n2 inserted (version 3)\n"
    assert ran.err.startswith("error[MV201]: ")
    assert "  --> f.sql:4:3\n" in ran.err
    assert run("sql", "-w", empty, "SELECT id FROM t ORDER BY id", "--format", "csv").out == "id\n1\n2\n"


def test_a_file_that_cannot_be_parsed_changes_nothing(empty: str, run: Run, elsewhere: Path, no_spark: None) -> None:
    (elsewhere / "f.sql").write_text("CREATE TABLE t (id INT);\nINSERT INTO t VALUES (1);\nDELETE t WHERE FROM x;\n")
    ran = run("sql", "-w", empty, "--file", "f.sql")
    assert ran.code == 1
    assert "  --> f.sql:3:" in ran.err
    assert json.loads(run("status", "-w", empty, "--json").out)["version"]["current_vn"] == 1


def test_atomic_is_one_version_or_none(empty: str, run: Run, elsewhere: Path) -> None:
    (elsewhere / "good.sql").write_text("CREATE TABLE t (id INT, PRIMARY KEY (id)); INSERT INTO t VALUES (1)")
    (elsewhere / "bad.sql").write_text("INSERT INTO t VALUES (2);\nINSERT INTO t VALUES (1)")
    ran = run("sql", "-w", empty, "--file", "good.sql", "--atomic")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("committed: table t made, 1 inserted (version 2)\n")
    ran = run("sql", "-w", empty, "--file", "bad.sql", "--atomic")
    assert ran.code == 1
    assert "  --> bad.sql:2:1\n" in ran.err
    assert run("sql", "-w", empty, "SELECT * FROM t", "--format", "csv").out == "id\n1\n"
    status = json.loads(run("status", "-w", empty, "--json").out)
    assert (status["version"]["current_vn"], status["version"]["maintenance_active"]) == (2, False)


def test_a_file_may_group_statements(empty: str, run: Run, elsewhere: Path) -> None:
    (elsewhere / "f.sql").write_text(
        "CREATE TABLE t (id INT);\nBEGIN; INSERT INTO t VALUES (1); SELECT count(*) AS n FROM t; ROLLBACK;\n"
        "START TRANSACTION; INSERT INTO t VALUES (2); COMMIT;\nSELECT * FROM t;\nBEGIN; INSERT INTO t VALUES (3)"
    )
    ran = run("sql", "-w", empty, "--file", "f.sql")
    assert ran.code == 1, "it ends inside a transaction"
    assert "error[MV305]: the text ends inside a transaction" in ran.err
    assert [line for line in ran.out.splitlines() if line.startswith("│")] == ["│ n │", "│ 1 │", "│ id │", "│  2 │"]
    assert run("sql", "-w", empty, "SELECT * FROM t", "--format", "csv").out == "id\n2\n"


@pytest.mark.conforms("Q2")
def test_status_history_and_gc_of_a_shop(shop: Shop, run: Run) -> None:
    status = json.loads(run("status", "-w", shop.path, "--json").out)
    assert {t["name"]: t["overlay_rows"] > 0 for t in status["tables"]} == {"sales": True, "visits": True}
    assert all(t["overhead"] > 0 and t["bytes"] > 0 for t in status["tables"])
    assert [s["behind"] for s in status["sessions"]] == [1]
    told = run("status", "-w", shop.path).out
    assert "sales" in told
    assert "sure until version 9 is being written" in told
    assert "sales ~2 -1" in run("history", "-w", shop.path, "--limit", 1).out
    ran = run("gc", "-w", shop.path, "--json")
    assert json.loads(ran.out)["horizon"] == 5, "the open session holds it back"
    assert (
        run("sql", "-w", shop.path, "SELECT count(*) AS n FROM sales", "--session", shop.before, "--format", "csv").out
        == "n\n4\n"
    )
