"""Rows as a table, as CSV and as JSON."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from decimal import Decimal

import pytest

from matview.cli.rows import Format, write_rows

COLUMNS = ("id", "what", "amount", "what")
ROWS = [
    (1, 'a "b", c', Decimal("12.50"), None),
    (2, "line\nbreak \x1b[31m", Decimal("1E+3"), dt.date(2026, 1, 2)),
    (None, True, float("nan"), [1, {"k": b"\xff"}]),
]


def written(format: Format, capsys: pytest.CaptureFixture[str], rows: list[tuple[object, ...]] | None = None) -> str:
    write_rows(COLUMNS, ROWS if rows is None else rows, format)
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_csv(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader(io.StringIO(written("csv", capsys))))
    assert rows[0] == list(COLUMNS)
    assert rows[1] == ["1", 'a "b", c', "12.50", ""]
    assert rows[2] == ["2", "line\nbreak \x1b[31m", "1E+3", "2026-01-02"]
    assert rows[3] == ["", "true", "nan", '[1, {"k": "ff"}]']


def test_json_is_one_array_with_a_row_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    out = written("json", capsys)
    rows = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert rows[0] == {"id": 1, "what": 'a "b", c', "amount": "12.50", "what_2": None}
    assert rows[2]["what_2"] == [1, {"k": "ff"}]
    assert len(out.splitlines()) == len(ROWS) + 2


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_no_rows(format: Format, capsys: pytest.CaptureFixture[str]) -> None:
    out = written(format, capsys, [])
    assert out.strip() == "[]" if format == "json" else "amount" in out


def test_a_table_is_neither_coloured_nor_folded_outside_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    out = written("table", capsys, [(1, "x" * 500, "end", None)])
    assert "\x1b" not in out
    assert "x" * 500 + " │ end" in out
    assert "NULL" in out


def test_a_table_shows_control_characters_and_does_not_obey_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert r"break \x1b[31m" in written("table", capsys)
