"""A text as the statements in it, each with its tokens and its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import Token, TokenType, exp

from matview.errors import Place
from matview.versions.text import MatviewSpark

DIALECT = MatviewSpark


class _Tokenizer(MatviewSpark.Tokenizer):
    """sqlglot's own makes one string of what follows SHOW or EXPLAIN."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement. `text` is blank up to it, so that places in it are places in the whole."""

    text: str
    tokens: tuple[Token, ...]

    def begins_with(self, *openings: tuple[str, ...]) -> bool:
        """One of the openings, each a row of words, stands at the beginning."""
        words = [word for token in self.tokens[:4] for word in token.text.upper().split()]
        return any(tuple(words[: len(opening)]) == opening for opening in openings)

    def after(self, token: Token) -> str:
        """The text behind a token, blank before it."""
        return _blank(self.text[: token.end + 1]) + self.text[token.end + 1 :]


def split(text: str) -> tuple[Piece, ...]:
    """At each semicolon that is not in a string, a name or a comment."""
    found: list[list[Token]] = [[]]
    for token in _Tokenizer().tokenize(text):
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return tuple(_piece(text, tokens) for tokens in found if tokens)


def _piece(text: str, tokens: Sequence[Token]) -> Piece:
    begin, end = tokens[0].start, tokens[-1].end + 1
    return Piece(_blank(text[:begin]) + text[begin:end], tuple(tokens))


def _blank(text: str) -> str:
    return "".join("\n" if c == "\n" else " " for c in text)


def place_of_token(token: Token, source: str = "<sql>") -> Place:
    """Where a token begins."""
    return Place(token.line, max(1, token.col - (token.end - token.start)), source)


def place_of(node: exp.Expr | None, source: str = "<sql>") -> Place | None:
    """Where a node begins in the text, when the parser knows."""
    if node is None:
        return None
    spots = [_spot(n) for n in node.walk() if "line" in n.meta]
    if not spots:
        return None
    line, column = min(spots)
    return Place(line, column, source)


def _spot(name: exp.Expr) -> tuple[int, int]:
    """The parser notes where a name ends, that of a column or of a function."""
    length = name.meta["end"] - name.meta["start"] + 1
    return name.meta["line"], max(1, name.meta["col"] - length + 1)
