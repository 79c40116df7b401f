"""Unique indexes, and the conditions by which one row is in the way of another."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A column's name, or an expression as it was written, and how its texts are compared."""

    text: str
    is_column: bool
    collation: str


@dataclass(frozen=True, slots=True)
class Unique:
    """An index; a partial one has the condition that was written after WHERE."""

    parts: tuple[Part, ...]
    where: str | None
    origin: str


def quote(name: str) -> str:
    """A name in SQL, taken literally."""
    return '"' + name.replace('"', '""') + '"'


def in_the_way(unique: Unique, new: Callable[[str], str], row_of_new: str) -> str:
    """The condition on rows of the table (or of a copy of it with its alias) that have the same values as NEW.

    `new` gives the new value of a column; `row_of_new` is a derived table of all of them, under the table's name, in
    which an expression that was written for the table means the same.
    """
    equal = [
        f"{quote(part.text)} COLLATE {quote(part.collation)} = {new(part.text)}"
        if part.is_column
        else f"({part.text}) COLLATE {quote(part.collation)} = (SELECT {part.text} FROM {row_of_new})"
        for part in unique.parts
    ]
    if unique.where is not None:
        equal += [f"({unique.where})", f"(SELECT {unique.where} FROM {row_of_new})"]
    return " AND ".join(equal)


TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<other>.)""",
    re.DOTALL,
)


def index_parts(sql: str) -> tuple[list[str], str | None]:
    """The terms between the parentheses of a CREATE INDEX statement, and its condition; without comments and order."""
    depth, terms, where = 0, [""], list[str]()
    ended = False
    for match in TOKEN.finditer(sql):
        token = " " if match["blank"] else match[0]
        depth += (token == "(") - (token == ")")
        if ended:
            where.append(token)
        elif depth == 0 and token == ")":
            ended = True
        elif depth == 1 and token == ",":
            terms.append("")
        elif depth > 1 or (depth == 1 and token != "("):
            terms[-1] += token
    condition = re.sub(r"^\s*WHERE\b", "", "".join(where), flags=re.IGNORECASE).strip().rstrip(";").strip()
    return [plain_term(term) for term in terms], condition or None


COLLATE = re.compile(r"""\s+COLLATE\s+(?:\w+|"[^"]*"|'[^']*'|\[[^\]]*\]|`[^`]*`)\s*\Z""", re.IGNORECASE)


def plain_term(term: str) -> str:
    """A term without ASC or DESC and without the collation that the index has for it."""
    term = re.sub(r"\s+(?:ASC|DESC)\s*\Z", "", term.strip(), flags=re.IGNORECASE)
    return COLLATE.sub("", term).strip()
