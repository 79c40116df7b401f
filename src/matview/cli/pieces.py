"""A text of several statements, cut at its semicolons; each piece knows where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from matview.errors import Place, SqlSyntaxError

# Spark's lexis as far as it can hide a semicolon. What never ends is `open`.
_LEXEME = re.compile(
    r"""
    (?P<comment> --[^\n]* | /\*.*?\*/ )
  | (?P<raw>     \b[rR] (?: '[^']*' | "[^"]*" ) )
  | (?P<quoted>  '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | `[^`]*` )
  | (?P<open>    /\* | ['"`] )
  | (?P<end>     ; )
  | (?P<space>   \s+ )
  | (?P<word>    \w+ )
  | (?P<other>   . )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of `whole`, without its semicolon, at a line and column that count from 1."""

    text: str
    line: int
    column: int
    whole: str
    source: str
    is_one_of_several: bool = True

    @property
    def padded(self) -> str:
        """The statement after as many empty lines and spaces as stand before it: a parser then tells true places."""
        return "\n" * (self.line - 1) + " " * (self.column - 1) + self.text


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the statements of a text begin and end; whether the last has its semicolon; what is open at the end."""

    spans: tuple[tuple[int, int], ...]
    is_ended: bool
    open_at: int | None


def cut(text: str) -> Cut:
    spans: list[tuple[int, int]] = []
    begin: int | None = None
    end = 0
    for kind, first, last in _lexemes(text):
        if kind == "end":
            if begin is not None:
                spans.append((begin, end))
            begin = None
        elif kind not in ("space", "comment"):
            begin, end = first if begin is None else begin, last
        if kind == "open":
            return Cut((*spans, (first if begin is None else begin, len(text))), False, first)
    if begin is None:
        return Cut(tuple(spans), bool(spans), None)
    return Cut((*spans, (begin, end)), False, None)


def _lexemes(text: str) -> Iterator[tuple[str, int, int]]:
    for found in _LEXEME.finditer(text):
        assert found.lastgroup is not None
        yield found.lastgroup, found.start(), found.end()


def pieces(text: str, source: str = "<sql>") -> tuple[Piece, ...]:
    """The statements of a text; a quote or a comment that never ends is an error at its beginning."""
    found = cut(text)
    if found.open_at is not None:
        where = Place(*_line_and_column(text, found.open_at), source)
        raise SqlSyntaxError("what begins here never ends", where=where, help="close the quote or the comment")
    return tuple(_piece(text, begin, end, source, len(found.spans)) for begin, end in found.spans)


def is_complete(text: str) -> bool:
    """Nothing is open and the last statement has its semicolon, or there is no statement at all."""
    found = cut(text)
    return found.is_ended or not found.spans


def _piece(text: str, begin: int, end: int, source: str, count: int) -> Piece:
    line, column = _line_and_column(text, begin)
    return Piece(text[begin:end], line, column, text, source, count > 1)


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
