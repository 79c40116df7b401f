"""The queries of the fixture files: text, and where DuckDB does not do as Spark does, the rows expected."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]
FIXTURES = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Case:
    """`rows` is None where DuckDB itself says what the query gives."""

    place: str
    query: str
    rows: tuple[Row, ...] | None = None


def cases() -> Iterator[Case]:
    for path in sorted(FIXTURES.glob("*.sql")):
        line = 1
        for block in path.read_text().split("\n\n"):
            yield _case(f"{path.stem}:{line}", block.strip())
            line += block.count("\n") + 2


def _case(place: str, block: str) -> Case:
    query, arrow, rows = block.partition("\n=>")
    text = "\n".join(line for line in query.splitlines() if not line.startswith("-- "))
    return Case(place, text, ast.literal_eval(f"({rows.strip()},)" if rows.strip() else "()") if arrow else None)


def bag(rows: Iterator[Row] | tuple[Row, ...] | list[Row]) -> Counter[Row]:
    """Rows as they are counted: lists hashable, fractions to twelve digits, dates as text."""
    return Counter(tuple(map(_plain, row)) for row in rows)


def _plain(value: Any) -> Any:
    match value:
        case list():
            return tuple(map(_plain, value))
        case bool() | int() | str() | None:
            return value
        case float():
            return round(value, 9)
    try:
        return round(float(value), 9)
    except (TypeError, ValueError):
        return str(value)
