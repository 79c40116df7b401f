"""The interactive prompt, typed at through a pipe and through a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from .conftest import Ran, Run, Shop, python

Type = Callable[..., Ran]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "matview"


@pytest.fixture
def type_(run: Run, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Type]:
    """`type_(path, "line", "line")`: the lines, each with Enter, then Ctrl-D."""
    assert state
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):

        def type_lines(path: str, *lines: str) -> Ran:
            keys.send_text("".join(f"{line}\r" for line in lines) + "\x04")
            return run("sql", "-w", path)

        yield type_lines


def drawn(ran: Ran) -> list[str]:
    return [line for line in ran.out.splitlines() if line.startswith("│")]


def test_a_statement_ends_at_its_semicolon(shop: Shop, type_: Type) -> None:
    ran = type_(
        shop.path, "SELECT count(*) AS n", "  FROM sales", "WHERE city <> ';'", ";", "SELECT 1 AS a; SELECT 2 AS b;"
    )
    assert (ran.code, ran.err) == (0, "")
    assert drawn(ran) == ["│ n │", "│ 3 │", "│ a │", "│ 1 │", "│ b │", "│ 2 │"]


def test_after_an_error_the_prompt_comes_back(shop: Shop, type_: Type) -> None:
    ran = type_(shop.path, "SELECT *", "FROM nope;", "SELEC;", r"\d nope", r"\huh", "SELECT 1 AS a;")
    assert ran.code == 0
    assert "  --> <sql>:2:6\n   | FROM nope;\n   |      ^\n" in ran.err
    assert ran.err.count("error[MV103]") == 2
    assert ran.err.count("error[") == 3
    assert r"there is no command \huh" in ran.err
    assert "Traceback" not in ran.err
    assert drawn(ran) == ["│ a │", "│ 1 │"]


@pytest.mark.usefixtures("spark")
def test_transactions_and_sessions(empty: str, type_: Type) -> None:
    count = "SELECT count(*) AS n FROM t;"
    ran = type_(
        empty,
        "CREATE TABLE t (id INT);",
        r"\session",
        *("BEGIN;", "INSERT INTO t VALUES (1), (2);", count, "BEGIN;", "COMMIT;"),
        count,
        r"\session off",
        count,
        *("BEGIN;", "DELETE FROM t;", "ROLLBACK;", "COMMIT;"),
        count,
        *("BEGIN;", "DELETE FROM t;"),  # and leaves
    )
    assert ran.code == 0
    assert drawn(ran)[1::2] == ["│ 2 │", "│ 0 │", "│ 2 │", "│ 2 │"], (
        "own changes, the pinned version, the newest, undone"
    )
    assert "error[MV102]: a transaction is open already" in ran.err
    assert "error[MV305]: no transaction is open" in ran.err
    assert "queries now read version 2" in ran.out
    assert ran.out.endswith("rolled back\n")


def test_commands_need_no_spark(shop: Shop, type_: Type, no_spark: None) -> None:
    ran = type_(shop.path, r"\d", r"\d SALES", r"\timing", "SHOW TABLES;", rf"\session {shop.before}", r"\?", r"\q")
    assert ran.code == 0
    assert "│ sales  │ id, city, amount │ id  │             2 │" in ran.out
    assert "│ amount │ decimal(12,2) │ true     │ false │" in ran.out
    assert ran.err.startswith("time: ")
    assert f"(session {shop.before})" in ran.out
    assert "\\timing" in ran.out


@pytest.mark.parametrize("leaving", ["exit", "quit;", "EXIT;", r"\q"])
def test_leaving(empty: str, type_: Type, no_spark: None, leaving: str) -> None:
    assert type_(empty, leaving, "SELECT 1;").code == 0


def test_history_is_kept_for_next_time(empty: str, type_: Type, state: Path, no_spark: None) -> None:
    type_(empty, "SHOW", "TABLES;", r"\d")
    kept = (state / "history").read_text()
    assert "+SHOW\n+TABLES;\n" in kept
    assert "+\\d\n" in kept
    assert (state / "history").stat().st_mode & 0o077 == 0


def test_on_a_terminal(empty: str, state: Path) -> None:
    """A real one, as far as the program can tell: colours, a prompt, and an end at `\\q`."""
    assert state
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    environment.pop("NO_COLOR", None)
    command = python(f"sys.exit(main(['sql', '-w', {empty!r}]))")
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True)
    os.close(theirs)
    try:
        seen = _until(ours, b"matview>")
        os.write(ours, b"\\d nope\r")
        seen += _until(ours, b"MV103")
        os.write(ours, b"\\q\r")
        seen += _until(ours, None)
        assert child.wait(timeout=60) == 0
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    assert b"\x1b[1;31merror[MV103]\x1b[0m" in seen
    assert b"starting Spark" not in seen


def _until(terminal: int, mark: bytes | None, seconds: float = 60.0) -> bytes:
    """What the terminal shows up to a mark, or to its end."""
    seen, deadline = b"", time.monotonic() + seconds
    while mark is None or mark not in seen:
        assert select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0], seen
        try:
            read = os.read(terminal, 4096)
        except OSError:  # Linux: the other side has closed
            read = b""
        if not read:
            break
        seen += read
    return seen
