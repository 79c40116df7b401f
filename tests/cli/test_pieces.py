"""Cutting a text at its semicolons."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from matview.cli.pieces import is_complete, pieces
from matview.errors import SqlSyntaxError

FRAGMENTS = (
    *("SELECT", "x", "1", "''", "'a;b'", "'it\\'s;'", '"q;"', "`n;m`", "r'\\'", "R'a;'", "xr'a;'", "r"),
    *(";", ";;", "-- c;\n", "--\n", "/* ; */", "/*;\n*/", "\n", "\t", " ", "-", "/", "*", "(", ")", "ä"),
)


def test_each_piece_knows_its_place() -> None:
    text = "-- first\nSELECT 1;\n\n  /* ; */ SELECT ';'\n FROM t ; ;\nSELECT 3"
    found = pieces(text, "f.sql")
    assert [p.text for p in found] == ["SELECT 1", "SELECT ';'\n FROM t", "SELECT 3"]
    assert [(p.line, p.column) for p in found] == [(2, 1), (4, 11), (6, 1)]
    assert all(p.source == "f.sql" and p.whole == text for p in found)


@pytest.mark.parametrize("text", ["", "  \n", "-- nothing\n", ";;", "/* ; */"])
def test_no_statement(text: str) -> None:
    assert pieces(text) == ()
    assert is_complete(text)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1;\nSELECT 2", False),
        ("SELECT ';", False),
        ("SELECT 1; /* ", False),
        ("SELECT `a;", False),
    ],
)
def test_complete_at_the_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@pytest.mark.parametrize(("text", "place"), [("SELECT 1;\n  SELECT 'ab", (2, 10)), ("/* x", (1, 1)), ("x `", (1, 3))])
def test_what_never_ends_is_told_where_it_begins(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        pieces(text)
    assert caught.value.where is not None
    assert (caught.value.where.line, caught.value.where.column) == place


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map(" ".join))
def test_as_the_parser_sees_it(text: str) -> None:
    """The same statements, beginning at the same characters, as the tokens of the parser say."""
    begins, fresh = [], True
    for token in sqlglot.tokenize(text, read="spark"):
        if token.text == ";" and token.end == token.start:
            fresh = True
        elif fresh:
            begins.append(token.start)
            fresh = False
    found = pieces(text)
    assert len(found) == len(begins)
    for piece, begin in zip(found, begins, strict=True):
        assert text.startswith(piece.text, begin)
        assert piece.padded.count("\n") == piece.line - 1 + piece.text.count("\n")
