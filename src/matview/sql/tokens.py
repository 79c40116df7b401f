"""Reads a statement that sqlglot does not know from its tokens, from left to right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sqlglot import Token, TokenType

from matview.errors import Place, SqlSyntaxError, UnsupportedStatement
from matview.sql.pieces import Piece, place_of_token

T = TypeVar("T")

NO_NAMES = (TokenType.STRING, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT)


class TokenReader:
    """Stands at a token of one statement."""

    def __init__(self, piece: Piece, source: str) -> None:
        self._piece = piece
        self._source = source
        self._at = 0

    def _token(self) -> Token | None:
        return self._piece.tokens[self._at] if self._at < len(self._piece.tokens) else None

    def stands(self, *words: str) -> bool:
        return self._ahead(words) > 0

    def took(self, *words: str) -> bool:
        """Goes past the words if they stand here."""
        tokens = self._ahead(words)
        self._at += tokens
        return tokens > 0

    def _ahead(self, words: tuple[str, ...]) -> int:
        """How many tokens the words are, if they stand here; the tokenizer makes one of some pairs (CLUSTER BY)."""
        left = list(words)
        for number, token in enumerate(self._piece.tokens[self._at :], 1):
            own = token.text.upper().split()
            if token.token_type is TokenType.STRING or own != left[: len(own)]:
                return 0
            del left[: len(own)]
            if not left:
                return number
        return 0

    def expect(self, *words: str) -> None:
        if not self.took(*words):
            raise self.wrong(" ".join(words))

    def name(self) -> str:
        found = self.part()
        if self.stands("."):
            raise UnsupportedStatement(
                "a warehouse has one flat set of names", where=self.here(), help="write the name without a database"
            )
        return found

    def part(self) -> str:
        """A name, or a part of one that has several."""
        token = self._token()
        if token is None or token.token_type in NO_NAMES:
            raise self.wrong("a name")
        self._at += 1
        return token.text

    def names(self) -> tuple[str, ...]:
        self.expect("(")
        found = [self.name()]
        while self.took(","):
            found.append(self.name())
        self.expect(")")
        return tuple(found)

    def string(self) -> str:
        token = self._token()
        if token is None or token.token_type is not TokenType.STRING:
            raise self.wrong("a text in quotes")
        self._at += 1
        return token.text

    def ended(self, statement: T) -> T:
        if self._token() is not None:
            raise self.wrong("the end of the statement")
        return statement

    def here(self) -> Place:
        token = self._token() or self._piece.tokens[-1]
        return place_of_token(token, self._source)

    def wrong(self, wanted: str) -> SqlSyntaxError:
        token = self._token()
        found = f"{token.text!r}" if token else "the end of the text"
        return SqlSyntaxError(f"expected {wanted}, found {found}", where=self.here())

    def choice(self, choices: Mapping[tuple[str, ...], T], shown: str) -> T:
        """One of several words, or rows of words; the longer ones first."""
        for words, meaning in choices.items():
            if self.took(*words):
                return meaning
        raise self.wrong(shown)
