"""Commands that need no Spark: they do not even import it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from matview import __version__
from matview.opening import open_catalog

from .conftest import Run, in_child, python
from .tables import make_tables

LIGHT: tuple[tuple[str, ...], ...] = (
    ("init", "new.wh"),
    ("session", "open", "-w", "shop.wh"),
    ("session", "list", "-w", "shop.wh"),
)
LIGHT += (("status", "-w", "shop.wh"), ("history", "-w", "shop.wh"), ("--help",), ("--version",), ("nonsense",))


HEAVY = {"pyspark", "sqlglot", "pandas", "pyarrow", "numpy", "duckdb"}
HEAVY |= {"sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "psycopg"}


def test_what_is_not_needed_is_not_imported(empty: str) -> None:
    assert empty
    shown = f"print('imported:', *sorted({HEAVY!r} & set(sys.modules)))"
    told = in_child(";".join(f"main({list(tokens)!r}); {shown}" for tokens in LIGHT))
    assert [line.strip() for line in told.splitlines() if line.startswith("imported:")] == ["imported:"] * len(LIGHT)


def test_help_needs_no_database(elsewhere: Path) -> None:
    assert elsewhere
    told = in_child("main(['--help']); print('imported:', *sorted({'sqlalchemy', 'deltalake'} & set(sys.modules)))")
    assert told.splitlines()[-1].strip() == "imported:"


def test_status_of_tables_needs_no_more(elsewhere: Path) -> None:
    """Delta tables and their Parquet files are looked at without Arrow."""
    make_tables("shop.wh", "sales", "cities")
    told = in_child(f"main(['status', '-w', 'shop.wh']); print('imported:', *sorted({HEAVY!r} & set(sys.modules)))")
    assert " sales " in told and " 3 " in told
    assert told.splitlines()[-1].strip() == "imported:"


def test_version(run: Run) -> None:
    assert run("--version").out.strip() == __version__


@pytest.mark.parametrize(
    "verb",
    [
        *("init", "sql", "plan", "apply", "refresh", "run", "explain", "diff", "audit"),
        *("session", "session open", "session list", "session close", "status", "history", "gc"),
    ],
)
def test_every_verb_has_an_example(run: Run, verb: str) -> None:
    told = run(*verb.split(), "--help")
    assert told.code == 0
    assert "Example: " in told.out
    assert f"matview {verb}" in told.out


def test_help_lists_the_verbs(run: Run) -> None:
    told = run("--help").out
    verbs = (
        "init",
        "sql",
        "plan",
        "apply",
        "refresh",
        "run",
        "explain",
        "diff",
        "audit",
        "session",
        "status",
        "history",
        "gc",
        "demo",
    )
    assert [told.index(f"│ {verb} ") for verb in verbs]


# usage ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (("statu",), "did you mean 'status'?"),
        (("status", "--bogus"), "--bogus"),
        (("init",), "DIR"),
        (("session", "open", "--grain", "row"), "--grain"),
        (("session", "open", "-w", "x", "--ttl", "soon"), "'soon' is no length of time"),
        (("status",), "MATVIEW_WAREHOUSE"),
        (("history", "--limit", "many"), "--limit"),
    ],
)
def test_usage_errors(elsewhere: Path, run: Run, tokens: tuple[str, ...], told: str) -> None:
    assert elsewhere
    ran = run(*tokens)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert told in ran.err


def test_no_arguments_are_a_call_for_help(run: Run) -> None:
    assert "Usage: matview" in run().out


# which warehouse ------------------------------------------------------------------------------------------------------


def test_the_warehouse_by_option_environment_or_habit(
    elsewhere: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.wh", "b.wh", "warehouse"):
        assert run("init", elsewhere / name).code == 0
    assert "warehouse    warehouse\n" in run("status").out
    monkeypatch.setenv("MATVIEW_WAREHOUSE", "b.wh")
    assert "warehouse    b.wh\n" in run("status").out
    assert "warehouse    a.wh\n" in run("status", "-w", "a.wh").out


def test_the_catalog_may_stand_elsewhere(elsewhere: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{elsewhere}/c.db"
    assert run("init", "x.wh", "--catalog", url).code == 0
    assert [entry.name for entry in (elsewhere / "x.wh").iterdir()] == ["matview.id"]
    assert run("status", "-w", "x.wh").code == 1
    assert run("status", "-w", "x.wh", "--catalog", url).code == 0
    monkeypatch.setenv("MATVIEW_CATALOG", url)
    assert run("status", "-w", "x.wh").code == 0


def test_no_warehouse(elsewhere: Path, run: Run) -> None:
    (elsewhere / "full").mkdir()
    (elsewhere / "full" / "file").touch()
    for path in ("missing", "full", "full/file"):
        ran = run("status", "-w", path)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith("error[MV401]: ")


# init -----------------------------------------------------------------------------------------------------------------


def test_init_says_what_it_made_and_what_is_next(elsewhere: Path, run: Run) -> None:
    ran = run("init", "deep/down/shop.wh", "--versions", 5)
    assert (ran.code, ran.err) == (0, "")
    assert "5 versions" in ran.out
    assert "matview sql -w deep/down/shop.wh" in ran.out
    with open_catalog(str(elsewhere / "deep/down/shop.wh")) as catalog:
        assert catalog.version().versions == 5


def test_init_spoils_nothing(elsewhere: Path, run: Run) -> None:
    assert run("init", "shop.wh").code == 0
    (elsewhere / "full").mkdir()
    (elsewhere / "full" / "file").touch()
    assert "error[MV409]" in run("init", "shop.wh").err
    assert "error[MV401]" in run("init", "full").err
    assert "error[MV409]" in run("init", "one.wh", "--versions", 1).err
    assert [p.name for p in (elsewhere / "full").iterdir()] == ["file"]


# sessions -------------------------------------------------------------------------------------------------------------


def test_a_session_from_open_to_close(empty: str, run: Run) -> None:
    opened = run("session", "open", "-w", empty, "--grain", "tuple", "--ttl", "2 hours")
    assert opened.code == 0
    session_id = opened.out.strip()
    assert "version 1" in opened.err
    listed = json.loads(run("session", "list", "-w", empty, "--json").out)
    assert [(s["id"], s["grain"], s["ttl"]) for s in listed] == [(session_id, "tuple", 7200)]
    assert session_id in run("session", "list", "-w", empty).out
    assert run("session", "close", "-w", empty, session_id).code == 0
    assert session_id not in run("session", "list", "-w", empty).out
    assert "closed" in run("session", "list", "-w", empty, "--all").out
    assert "had ended before" in run("session", "close", "-w", empty, session_id).out


def test_closing_what_is_not_there(empty: str, run: Run) -> None:
    ran = run("session", "close", "-w", empty, "nobody")
    assert ran.code == 1
    assert ran.err.startswith("error[MV302]: ")


# a glance -------------------------------------------------------------------------------------------------------------


def test_status_of_an_empty_warehouse(empty: str, run: Run) -> None:
    told = run("status", "-w", empty).out
    assert "3, the current one is 1" in told
    assert "idle" in told
    assert "too little to go on" in told


def test_status_names_who_maintains(empty: str, run: Run) -> None:
    with open_catalog(empty) as catalog:
        lease = catalog.lease.acquire("keeper@host", 60)
        catalog.transactions.begin(lease)
        assert "active, by keeper@host since 20" in run("status", "-w", empty).out
        status = json.loads(run("status", "-w", empty, "--json").out)
        assert status["version"]["maintenance_active"] is True
        assert status["maintenance"]["holder"] == "keeper@host"


def test_history_tells_of_failures(empty: str, run: Run) -> None:
    with open_catalog(empty) as catalog:
        lease = catalog.lease.acquire("keeper@host", 60)
        catalog.transactions.begin(lease)
        catalog.transactions.abort(lease, error="out of paper")
    assert "out of paper" in run("history", "-w", empty).out
    (record,) = json.loads(run("history", "-w", empty, "--json", "--limit", 1).out)
    assert (record["state"], record["vn"]) == ("aborted", 2)


def test_who_reads_only_the_first_line(empty: str) -> None:
    """`matview history | head -1`: no complaint of Python's."""
    command = python(f"sys.exit(main(['history', '-w', {empty!r}, '--json']))")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""


@pytest.mark.parametrize("tokens", [("status",), ("history",)], ids=" ".join)
def test_start_up_takes_no_second(empty: str, tokens: tuple[str, ...]) -> None:
    """The aim is 0.5 s on a machine that does nothing else; processor time, because this one may be busy."""
    script = f"import time; main({[*tokens, '-w', empty]!r}); print(time.process_time())"
    assert any(float(in_child(script).splitlines()[-1]) < 1.0 for _ in range(3))
