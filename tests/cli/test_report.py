"""Errors as a user sees them."""

from __future__ import annotations

import pytest

from matview.cli.pieces import Piece, pieces
from matview.cli.report import report_bug, report_error
from matview.errors import DuplicateKey, Place, UnknownTable

TEXT = "SELECT 1;\nSELECT *\n\tFROM x"


def told(error: UnknownTable | DuplicateKey, piece: Piece | None, capsys: pytest.CaptureFixture[str]) -> list[str]:
    report_error(error, piece)
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_a_caret_where_the_place_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    error = UnknownTable("there is no table 'x' at version 3", where=Place(3, 7), help="tables: none")
    assert told(error, pieces(TEXT, "f.sql")[1], capsys) == [
        "error[MV103]: there is no table 'x' at version 3",
        "  --> f.sql:3:7",
        "   |  FROM x",
        "   |       ^",
        "  help: tables: none",
    ]


def test_else_the_statement(capsys: pytest.CaptureFixture[str]) -> None:
    error = DuplicateKey("key 1 is there", help="")
    assert told(error, pieces(TEXT, "f.sql")[1], capsys) == ["error[MV201]: key 1 is there", "  --> f.sql:2:1"]
    assert told(error, pieces("SELECT 1")[0], capsys) == ["error[MV201]: key 1 is there"]
    assert told(error, None, capsys) == ["error[MV201]: key 1 is there"]


def test_a_place_outside_the_text_has_no_caret(capsys: pytest.CaptureFixture[str]) -> None:
    assert "^" not in "".join(told(UnknownTable("no", where=Place(9, 1)), pieces("SELECT 1")[0], capsys))


def test_colours_only_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert "\x1b[1;31merror[MV103]" in told(UnknownTable("no"), None, capsys)[0]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in told(UnknownTable("no"), None, capsys)[0]


def test_a_stack_trace_only_for_who_asks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MATVIEW_DEBUG", raising=False)
    error = _raised()
    report_bug(error)
    assert capsys.readouterr().err.startswith("error: ZeroDivisionError: division by zero\n  help: ")
    monkeypatch.setenv("MATVIEW_DEBUG", "1")
    report_bug(error)
    assert "Traceback" in capsys.readouterr().err


def _raised() -> Exception:
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        return error
    raise AssertionError
