"""`matview plan` and `matview apply`: files of definitions, looked at and done."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.docs.test_viewgroups import SECTIONS, examples

from .conftest import Run

ILLEGAL = examples(SECTIONS[8])
LEGAL = ILLEGAL.replace("MAINTAIN DEFERRED", "MAINTAIN IMMEDIATE")


@pytest.fixture
def files(elsewhere: Path) -> Path:
    (elsewhere / "illegal.sql").write_text(ILLEGAL)
    (elsewhere / "legal.sql").write_text(LEGAL)
    (elsewhere / "wrong.sql").write_text(
        "CREATE TABLE t (x INT);\nDROP TABLE nope;\nCREATE MATERIALIZED VIEW v AS\n  SELECT y FROM t"
    )
    (elsewhere / "unreadable.sql").write_text("CREATE TABLE t (x INT);\nCREATE TABLE (")
    return elsewhere


@pytest.mark.conforms("C3")
def test_an_illegal_proposal(files: Path, empty: str, run: Run, no_spark: None) -> None:
    told = run("plan", "-w", empty, "illegal.sql")
    assert told.code == 1
    assert "│ create │ view  │ total_item_returns │" in told.out
    assert "│ base               │           │              │ customer, sales │ cust_returns (deferred) " in told.out
    assert told.err.startswith(
        "error[MV608]: snapshot view total_item_returns reads deferred view cust_returns (Rule 8)"
    )
    assert told.err.count("\n    ") == 3, "the three remedies of Example 2.2"
    assert told.err.count("error[") == 1
    assert "tables       none" in run("status", "-w", empty).out, "nothing is done"


def test_a_legal_proposal(files: Path, empty: str, run: Run, no_spark: None) -> None:
    told = run("plan", "-w", empty, "legal.sql")
    assert (told.code, told.err) == (0, "")
    assert told.out.endswith("legal; `matview apply` does it\n")
    found = json.loads(run("plan", "-w", empty, "legal.sql", "--json").out)
    assert (found["legal"], found["problems"], found["version"]) == (True, [], None)
    assert found["steps"][0] == {"action": "create", "kind": "table", "name": "customer", "because": []}
    assert found["viewgroups"] == {
        "base": ["cust_returns", "customer", "sales"],
        "total_item_returns": ["total_item_returns"],
    }


def test_every_problem_with_its_place(files: Path, empty: str, run: Run, no_spark: None) -> None:
    told = run("plan", "-w", empty, "legal.sql", "wrong.sql")
    assert told.code == 1
    assert "error[MV103]: there is no table 'nope'\n  --> wrong.sql:2:1\n" in told.err
    assert "error[MV104]: there is no column `y` here\n  --> wrong.sql:4:10\n   |   SELECT y FROM t\n" in told.err
    found = json.loads(run("plan", "-w", empty, "wrong.sql", "--json").out)
    assert [problem["code"] for problem in found["problems"]] == ["MV103", "MV104"]


@pytest.mark.parametrize("verb", ["plan", "apply"])
def test_wrong_calls(files: Path, empty: str, run: Run, verb: str, no_spark: None) -> None:
    assert "which files?" in run(verb, "-w", empty).err
    assert run(verb, "-w", empty).code == run(verb, "-w", empty, "missing.sql").code == 2
    told = run(verb, "-w", empty, "unreadable.sql")
    assert (told.code, told.out) == (1, "")
    assert "error[MV101]" in told.err and "unreadable.sql:2:" in told.err


def test_standard_input(files: Path, empty: str, run: Run, monkeypatch: pytest.MonkeyPatch, no_spark: None) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(ILLEGAL))
    assert run("plan", "-w", empty, "-").code == 1


@pytest.mark.usefixtures("spark")
def test_apply(files: Path, empty: str, run: Run) -> None:
    told = run("apply", "-w", empty, "illegal.sql")
    assert (told.code, told.out) == (1, "nothing was done\n")
    assert "error[MV608]" in told.err
    told = run("apply", "-w", empty, "legal.sql")
    assert (told.code, told.err) == (0, "")
    assert told.out.endswith("done, as version 2\n")
    again = run("apply", "-w", empty, "legal.sql")
    assert again.code == 0
    assert again.out.startswith("unchanged: 4 definitions\n") and again.out.endswith("everything is as it should be\n")
    assert json.loads(run("apply", "-w", empty, "legal.sql", "--json").out)["version"] is None
    assert run("plan", "-w", empty, "legal.sql").out.endswith("everything is as it should be\n")
