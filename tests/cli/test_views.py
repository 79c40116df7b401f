"""`matview refresh`, `explain`, `diff`, `audit`, and what other verbs say about views. Needs Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from matview.cli import main
from matview.cli.prompt import _words
from matview.cli.results import Look
from matview.cli.shell import Shell
from matview.cli.texts import shortened
from matview.warehouse import open_warehouse

from .conftest import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")

LOAD = """\
CREATE TABLE sales (id BIGINT, city STRING, amount DECIMAL(12,2), PRIMARY KEY (id));
INSERT INTO sales VALUES (1, 'Oslo', 12.50), (2, 'Bergen', 7), (3, NULL, 0.10), (4, 'Oslo', 3);
CREATE MATERIALIZED VIEW by_city AS SELECT city, sum(amount) AS total FROM sales GROUP BY city;
CREATE MATERIALIZED VIEW above AS SELECT id FROM sales WHERE amount > (SELECT avg(amount) FROM sales);
CREATE MATERIALIZED VIEW ranked AS SELECT id, rank() OVER (ORDER BY amount) AS place FROM sales
"""
CHANGE = "INSERT INTO sales VALUES (5, 'Voss', 5), (6, 'Oslo', 1)"


@pytest.fixture(scope="module")
def stale(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three views, one of them with a hidden part, whose table has changed since; tests only read it."""
    path = tmp_path_factory.mktemp("views") / "shop.wh"
    (load := path.with_name("load.sql")).write_text(LOAD)
    assert main(["init", str(path)]) == 0
    assert main(["sql", "-w", str(path), "--file", str(load), "--atomic"]) == 0
    assert main(["sql", "-w", str(path), CHANGE]) == 0
    return str(path)


@pytest.fixture
def own(stale: str, elsewhere: Path) -> str:
    """A copy, to be changed."""
    return shutil.copytree(stale, str(elsewhere / "own.wh"))


# looking --------------------------------------------------------------------------------------------------------------


def test_status_tells_of_views(stale: str, run: Run, no_spark: None) -> None:
    told = run("status", "-w", stale)
    assert told.code == 0
    (ranked,) = (line for line in told.out.splitlines() if "│ ranked " in line and "auto" in line)
    assert [ranked.split("│")[place].strip() for place in (2, 3, 7)] == ["snapshot", "ranked", "1"]
    assert "ranked: state of " in told.out and " behind, refreshed on demand\n" in told.out
    assert "`RANK()` over a window without PARTITION BY concerns" in ranked
    assert "__" not in told.out
    found = json.loads(run("status", "-w", stale, "--json").out)
    assert [(v["name"], v["reads"], v["behind"], v["refreshed_vn"]) for v in found["views"]] == [
        ("above", ["sales"], 1, 2),
        ("by_city", ["sales"], 1, 2),
        ("ranked", ["sales"], 1, 2),
    ]


def test_a_hidden_part_takes_its_place_in_its_view(stale: str, run: Run) -> None:
    found = json.loads(run("status", "-w", stale, "--json").out)["tables"]
    assert [t["name"] for t in found] == ["above", "by_city", "ranked", "sales"]
    (above,) = (t for t in found if t["name"] == "above")
    own = sum(file.stat().st_size for file in (Path(stale) / above["directory"]).rglob("*.parquet"))
    assert above["bytes"] > own > 0


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("", ""),
        ("[MV501] at <sql>:1:8 `rand()` is odd\n  help: x", "`rand()` is odd"),
        ("[MV501] is odd", "is odd"),
        ("x" * 70, "x" * 59 + "…"),
    ],
)
def test_a_reason_on_one_line(reason: str, told: str) -> None:
    assert shortened(reason, 60) == told


def test_explain(stale: str, run: Run) -> None:
    told = run("explain", "-w", stale, "by_city")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("view by_city\n  algebra\n")
    assert "for the changes that are waiting" in told.out
    made = run("explain", "-w", stale, "--sql", "CREATE MATERIALIZED VIEW v AS SELECT DISTINCT city FROM sales")
    assert made.out.startswith("view v\n  algebra\n")
    typed = run("sql", "-w", stale, "EXPLAIN MATERIALIZED VIEW by_city; SHOW MATERIALIZED VIEWS")
    assert typed.out.startswith(told.out), "a text, not a table of lines"
    assert "│ by_city │ snapshot │ by_city " in typed.out


def test_explain_shows_where_a_statement_is_wrong(stale: str, run: Run) -> None:
    text = "CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT AS\nSELECT id, rand() AS r FROM sales"
    told = run("explain", "-w", stale, "--sql", text)
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith("error[MV501]: ")
    assert "   | SELECT id, rand() AS r FROM sales\n   |            ^\n" in told.err


def test_diff_of_a_view_that_is_behind(stale: str, run: Run) -> None:
    told = run("diff", "-w", stale, "by_city")
    assert (told.code, told.out) == (0, "by_city equals its query\n"), "over the state that it shows"
    assert told.err == "what by_city reads has changed once since it was refreshed: `matview refresh by_city`\n"
    told = run("diff", "-w", stale, "by_city", "--newest", "--format", "csv")
    assert told.code == 1
    assert sorted(told.out.splitlines()[1:]) == ["+1,Oslo,16.50", "+1,Voss,5.00", "-1,Oslo,15.50"]
    assert told.out.startswith("weight,city,total\n")
    assert told.err == "what by_city reads has changed once since it was refreshed: `matview refresh by_city`\n"
    short = run("diff", "-w", stale, "by_city", "--newest", "--limit", 1)
    assert short.code == 1
    assert len([line for line in short.out.splitlines() if line.startswith("│")]) == 2
    assert "more rows differ" in short.err


@pytest.mark.parametrize(
    ("tokens", "code", "told"),
    [
        (("refresh",), 2, "or give --all"),
        (("refresh", "by_city", "--all"), 2, "or give --all"),
        (("explain",), 2, "which view?"),
        (("explain", "by_city", "--sql", "x"), 2, "which view?"),
        (("explain", "--sql", "SELECT 1"), 2, "--sql makes no materialized view"),
        (("diff", "by_city", "--limit", "-1"), 2, "--limit"),
        (("explain", "nope"), 1, "error[MV103]: there is no materialized view 'nope'"),
        (("explain", "sales"), 1, "error[MV103]: sales is a table, not a materialized view"),
        (("diff", "By_Citi"), 1, "did you mean by_city?"),
        (("diff", "sales"), 1, "error[MV103]: sales is a table, not a materialized view"),
        (("refresh", "by_citi"), 1, "error[MV103]: there is no materialized view or viewgroup 'by_citi'"),
        (("refresh", "sales"), 1, "error[MV103]: sales is a table, not a materialized view"),
    ],
    ids=str,
)
def test_wrong_calls(stale: str, run: Run, tokens: tuple[str, ...], code: int, told: str) -> None:
    ran = run(*tokens, "-w", stale)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err


@pytest.fixture
def shell(stale: str, spark: SparkSession) -> Iterator[Shell]:
    with open_warehouse(stale, spark=spark) as warehouse:
        yield Shell(warehouse, Look())


def test_the_prompt_knows_views_and_their_columns(shell: Shell) -> None:
    words = list(_words(shell))
    assert {"by_city", "total", "ranked", "place", "REFRESH MATERIALIZED VIEW"} <= set(words)
    assert not [word for word in words if word.startswith("__")]


# refreshing -----------------------------------------------------------------------------------------------------------


def test_from_stale_to_fresh(own: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run("audit", "-w", own, "--json")
    assert told.code == 0, "who is behind is not wrong"
    assert {a["view"]: (a["rows"], a["differing"], a["behind"]) for a in json.loads(told.out)} == {
        "above": (2, 0, 1),
        "by_city": (3, 0, 1),
        "ranked": (4, 0, 1),
    }
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    told = run("refresh", "-w", own, "--all")
    assert told.code == 0
    assert "refreshing above, by_city, ranked …\ncommitting …\n" in told.err
    assert "│ ranked  │ full " in told.out
    assert "│       4 │" in told.out, "one version for all of them"
    monkeypatch.undo()
    again = json.loads(run("refresh", "-w", own, "by_city", "ranked", "--json").out)
    assert [(r["view"], r["strategy"], r["rows"], r["version"]) for r in again] == [
        ("by_city", "up to date", 0, 4),
        ("ranked", "up to date", 0, 4),
    ]
    assert "__" not in run("history", "-w", own).out
    (anew,) = json.loads(run("refresh", "-w", own, "by_city", "--full", "--json").out)
    assert (anew["strategy"], anew["rows"], anew["version"]) == ("full", 4, 5)
    assert "│ by_city +4 " in run("history", "-w", own, "--limit", 1).out
    equal = run("diff", "-w", own, "by_city")
    assert (equal.code, equal.out) == (0, "by_city equals its query\n")
    told = run("audit", "-w", own)
    assert told.code == 0
    assert "│ by_city │    4 │         0 │" in told.out


def test_audit_of_no_views(empty: str, run: Run) -> None:
    told = run("audit", "-w", empty)
    assert (told.code, told.out) == (0, "there are no views\n")
    assert run("refresh", "-w", empty, "--all").code == 0
