"""From the printed form of a relational expression back to the expression, over the tables of the strategies.

For fixtures, which are then data: what matview.algebra.text prints for simple names, and nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from matview.algebra.nodes import (
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Outer,
    Project,
    Repeat,
    Scan,
    Semi,
    SetOp,
    TopK,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from matview.algebra.scalars import column, conjunction
from matview.algebra.schema import Field

from .strategies import TABLES

FIXTURES = Path(__file__).parent / "fixtures"


@dataclass
class Line:
    text: str
    under: list[Line] = field(default_factory=list)


def read(text: str) -> Node:
    """The expression that is printed so."""
    root = Line("")
    open_lines = [(-1, root)]
    for written in filter(str.strip, text.splitlines()):
        indent = len(written) - len(written.lstrip())
        while open_lines[-1][0] >= indent:
            open_lines.pop()
        made = Line(written.strip())
        open_lines[-1][1].under.append(made)
        open_lines.append((indent, made))
    (only,) = root.under
    return _node(only)


def read_pairs(file: str) -> list[tuple[str, str, str]]:
    """The cases of a fixture: a title after `#`, a text, and after `=>` another."""
    cases = re.split(r"^# ", (FIXTURES / file).read_text(), flags=re.MULTILINE)[1:]
    found = []
    for case in cases:
        title, _, body = case.partition("\n")
        before, _, after = body.partition("\n=>\n")
        found.append((title.strip(), before.strip("\n"), after.strip("\n")))
    return found


def _node(line: Line) -> Node:
    inputs = [_node(under) for under in line.under]
    for pattern, make in _OPERATORS:
        if found := re.fullmatch(pattern, line.text):
            return make(inputs, *found.groups())
    raise ValueError(f"no operator: {line.text}")


def expression(text: str) -> exp.Expr:
    """A scalar expression whose columns are bare names with dots in them."""

    def bare(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
            return part
        return column(".".join(p.name for p in part.parts))

    parsed = sqlglot.parse_one(f"SELECT {text}", dialect="spark").expressions[0]
    return parsed.transform(bare)  # type: ignore[no-any-return]


def _items(text: str) -> list[str]:
    """What commas separate, but for those within parentheses."""
    items, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            items.append(text[start:i].strip())
            start = i + 1
    return [item for item in (*items, text[start:].strip()) if item]


def _outputs(text: str) -> tuple[tuple[str, exp.Expr], ...]:
    pairs = (item.partition(" = ") for item in _items(text))
    return tuple((name, expression(value or name)) for name, _, value in pairs)


def _conditions(text: str) -> tuple[exp.Expr, ...]:
    return tuple(map(expression, _items(text)))


def _ordered(text: str) -> tuple[exp.Expr, ...]:
    parsed = sqlglot.parse_one(f"SELECT 1 ORDER BY {text}", dialect="spark").args["order"].expressions
    return tuple(o.transform(lambda p: column(p.sql("spark")) if isinstance(p, exp.Column) else p) for o in parsed)


def _scan(_: Sequence[Node], table: str, alias: str | None, columns: str) -> Scan:
    whole, wanted = TABLES[table].scan(alias or table), _items(columns)
    chosen = [whole.columns.index(name) for name in wanted]
    fields = tuple(whole.fields[i] for i in chosen)
    return replace(
        whole,
        columns=tuple(wanted),
        fields=fields,
        key=whole.key if set(whole.key) <= {f.name for f in fields} else (),
    )


def _values(_: Sequence[Node], names: str, rows: str) -> Values:
    written = _items(rows.replace(") (", "), (").removeprefix(" of no rows"))
    read_rows = tuple(tuple(map(expression, _items(row.strip()[1:-1]))) for row in written)
    kinds = map(_kind, read_rows[0]) if read_rows else ("int" for _ in _items(names))
    return Values(tuple(Field(n, kind) for n, kind in zip(_items(names), kinds, strict=True)), read_rows)


def _kind(value: exp.Expr) -> str:
    if isinstance(value, exp.Cast):
        return value.to.sql("spark").lower()
    return "string" if value.is_string else "int"


def _top(inputs: Sequence[Node], limit: str, offset: str | None, order: str) -> TopK:
    return TopK(inputs[0], _ordered(order), int(limit), int(offset or 0))


def _unnest(inputs: Sequence[Node], outer: str | None, generator: str, names: str) -> Unnest:
    return Unnest(inputs[0], expression(generator), tuple(Field(n, "int") for n in _items(names)), bool(outer))


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(_items(text or ""))


def _together(conditions: Iterable[exp.Expr]) -> exp.Expr:
    return conjunction(*conditions)


_OPERATORS: list[tuple[str, Callable[..., Any]]] = [
    (r"Scan (\w+)(?: as (\w+))? \[(.*)\]", _scan),
    (r"Change of (\w+)(?: as (\w+))? \[(.*)\]", lambda _, *words: Change(_scan(_, *words))),
    (r"Values \[(.*?)\](.*)", _values),
    (r"Filter \[(.*)\]", lambda i, c: Filter(i[0], _together(_conditions(c)))),
    (r"Project \[(.*)\]", lambda i, o: Project(i[0], _outputs(o))),
    (r"Distinct \[(.*)\]", lambda i, k: Aggregate(i[0], _names(k))),
    (r"Aggregate (?:by \[(.*?)\] )?\[(.*)\]", lambda i, k, a: Aggregate(i[0], _names(k), _outputs(a))),
    (r"Window (?:by \[(.*?)\] )?\[(.*)\]", lambda i, p, f: Window(i[0], _names(p), _outputs(f))),
    (r"Top (\d+)(?: after (\d+))? by \[(.*)\]", _top),
    (r"Repeat by (\S+)", lambda i, t: Repeat(i[0], t)),
    (r"Unnest (outer )?(.*) as \[(.*)\]", _unnest),
    (r"Join(?: on \[(.*)\])?", lambda i, c: Join(tuple(i), _conditions(c or ""))),
    (r"(Left|Full) join on \[(.*)\]", lambda i, k, c: Outer(k.lower(), i[0], i[1], _together(_conditions(c)))),
    (r"(Semi|Anti) join on \[(.*)\]", lambda i, k, c: Semi(k.lower(), i[0], i[1], _together(_conditions(c)))),
    (r"Union all", lambda i: UnionAll(tuple(i))),
    (r"((?:Except|Intersect)(?: all)?)", lambda i, k: SetOp(k.lower(), i[0], i[1])),
]
