"""Errors as a user sees them, on stderr: a code, what, where, the line with a caret, and a help line.

error[MV103]: there is no table 'x' at version 3
  --> load.sql:3:15
   | SELECT * FROM x
   |               ^
  help: tables: sales
"""

from __future__ import annotations

import os
import sys
import traceback

from matview.cli.pieces import Piece
from matview.errors import MatviewError, Place

RED, BLUE, GREEN = "1;31", "34", "32"


class UsageError(Exception):
    """The command line asks for something that cannot be; exit code 2."""

    def __init__(self, what: str, help: str = "") -> None:
        super().__init__(what)
        self.help = help


def report_error(error: MatviewError, piece: Piece | None = None) -> None:
    """`piece`: the statement that was running, which tells the place where the error itself does not."""
    lines = [_headline(error.what, error.code)]
    if (place := _place(error.where, piece)) is not None:
        lines.append(_paint(f"  --> {place}", BLUE))
    if error.where is not None and piece is not None:
        lines += _excerpt(piece.whole, error.where)
    _print([*lines, *_help(error.help)])


def report_usage(error: Exception) -> None:
    help_line = error.help if isinstance(error, UsageError) else _help_of(error)
    _print([_headline(str(error).strip()), *_help(help_line)])


def _help_of(error: Exception) -> str:
    """The help of the command that was called, as far as it is known."""
    called = " ".join(["matview", *(getattr(error, "command_chain", None) or ())])
    return f"`{called} --help` lists its {'options' if called != 'matview' else 'commands'}"


def report_plain(what: str) -> None:
    _print([_headline(what)])


def report_bug(error: Exception) -> None:
    """Something that Matview does not know; the stack trace only for who asks for it."""
    if os.environ.get("MATVIEW_DEBUG"):
        traceback.print_exception(error)
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    _print([_headline(what), *_help("this is a bug in Matview; MATVIEW_DEBUG=1 shows the stack trace to report")])


def _headline(what: str, code: str = "") -> str:
    return _paint(f"error[{code}]" if code else "error", RED) + f": {what}"


def _help(help: str) -> list[str]:
    return [f"  {_paint('help:', GREEN)} {help}"] if help else []


def _place(where: Place | None, piece: Piece | None) -> Place | None:
    """Texts are parsed under a neutral name; the piece knows the file's. A lone statement needs no place at all."""
    if piece is None:
        return where
    if where is not None:
        return Place(where.line, where.column, piece.source)
    return Place(piece.line, piece.column, piece.source) if piece.is_one_of_several else None


def _excerpt(whole: str, where: Place) -> list[str]:
    lines = whole.split("\n")
    if not 0 < where.line <= len(lines):
        return []
    shown = lines[where.line - 1].rstrip("\r").replace("\t", " ")
    return [f"   | {shown}", "   | " + " " * (where.column - 1) + _paint("^", RED)]


def _paint(text: str, colour: str) -> str:
    """By hand: rich takes 0.1 s to import, which the verbs that draw no table should not wait for."""
    plain = not sys.stderr.isatty() or "NO_COLOR" in os.environ
    return text if plain else f"\x1b[{colour}m{text}\x1b[0m"


def _print(lines: list[str]) -> None:
    print("\n".join(lines), file=sys.stderr)
