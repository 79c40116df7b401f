"""Rows on stdout: as a table for people, as CSV or JSON for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import count
from typing import Literal, assert_never

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from matview.cli.texts import as_text, plain

Format = Literal["table", "csv", "json"]
Row = Sequence[object]

ENDLESS = 10_000  # columns of text: what is no terminal has no width at which to fold


def stdout() -> Console:
    """Without colours where it is no terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else ENDLESS)


def write_rows(columns: Sequence[str], rows: Iterable[Row], format: Format) -> None:
    match format:
        case "table":
            write_table(columns, rows)
        case "csv":
            write_csv(columns, rows)
        case "json":
            write_json_rows(columns, rows)
        case _:
            assert_never(format)


def write_table(columns: Sequence[str], rows: Iterable[Row], title: str | None = None) -> None:
    kept = [tuple(row) for row in rows]
    table = Table(box=box.SQUARE, title=title, title_justify="left", title_style="bold")
    for index, name in enumerate(columns):
        numeric = any(_is_number(row[index]) for row in kept)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in kept:
        table.add_row(*(_cell(value) for value in row))
    stdout().print(table)


def write_csv(columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Null is an empty field."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if value is None else as_text(value) for value in row])


def write_json_rows(columns: Sequence[str], rows: Iterable[Row]) -> None:
    """An array with one object a line; written as the rows come."""
    names = _distinct(columns)
    separator = "["
    for row in rows:
        print(separator, json.dumps(plain(dict(zip(names, row, strict=True))), ensure_ascii=False), sep="\n", end="")
        separator = ","
    print("[]" if separator == "[" else "\n]")


def _distinct(names: Sequence[str]) -> list[str]:
    """An object has each name once: `a, a` become `a, a_2`."""
    taken: list[str] = []
    for name in names:
        spellings = (name if number == 1 else f"{name}_{number}" for number in count(1))
        taken.append(next(spelling for spelling in spellings if spelling not in taken))
    return taken


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(value: object) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    return Text("".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in as_text(value)))
