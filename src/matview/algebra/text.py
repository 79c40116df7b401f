"""The printed form of a relational expression: a tree, one operator per line, inputs under it.

It serves explanations and tests, so it is stable. Names stand in backquotes only where they need them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from matview.algebra.nodes import (
    Aggregate,
    Change,
    Filter,
    Join,
    Node,
    Opaque,
    Outer,
    Project,
    Repeat,
    Scan,
    Semi,
    SetOp,
    Stored,
    TopK,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from matview.algebra.scalars import DIALECT, conjuncts

_PLAIN = re.compile(r"[^\W\d]\w*(\.\w+)*")
MOST_ROWS = 3
"""So many written-out rows are shown; of more, only how many they are."""


def text(node: Node) -> str:
    """The tree under the node, without a line break at its end."""
    return "\n".join(_lines(node))


def _lines(node: Node) -> Iterable[str]:
    yield line(node)
    for part in node.inputs:
        yield from (f"  {under}" for under in _lines(part))


def line(node: Node) -> str:
    """The operator alone."""
    match node:
        case Scan() | Change() | Stored() | Values() | Opaque():
            return _leaf(node)
        case Join(_, on):
            return f"Join on {_conditions(*on)}" if on else "Join"
        case Outer(kind, _, _, on) | Semi(kind, _, _, on):
            return f"{kind.capitalize()} join on {_conditions(on)}"
        case UnionAll():
            return "Union all"
        case SetOp(kind):
            return kind.capitalize()
        case Filter() | Project() | Aggregate() | Window() | TopK() | Repeat() | Unnest():
            return _unary(node)


def _leaf(node: Scan | Change | Stored | Values | Opaque) -> str:
    match node:
        case Scan():
            return f"Scan {_scanned(node)}"
        case Change(scan):
            return f"Change of {_scanned(scan)}"
        case Stored(view):
            return f"Stored {_name(view)} {_names(node.names)}"
        case Values():
            return f"Values {_names(node.names)}{_rows(node)}"
        case Opaque(query):
            return f"Query {query.sql(DIALECT)}"


def _unary(node: Filter | Project | Aggregate | Window | TopK | Repeat | Unnest) -> str:
    match node:
        case Filter(_, condition):
            return f"Filter {_conditions(condition)}"
        case Project(_, outputs):
            return f"Project {_outputs(outputs)}"
        case Aggregate(_, keys, ()):
            return f"Distinct {_names(keys)}"
        case Aggregate(_, keys, aggregates):
            return f"Aggregate {_by(keys)}{_outputs(aggregates)}"
        case Window(_, partition, functions):
            return f"Window {_by(partition)}{_outputs(functions)}"
        case TopK(_, order, limit, offset):
            return f"Top {limit}{f' after {offset}' if offset else ''} by {_list(map(scalar, order))}"
        case Repeat(_, times):
            return f"Repeat by {_name(times)}"
        case Unnest(_, generator, made, outer):
            return f"Unnest {'outer ' if outer else ''}{scalar(generator)} as {_names(f.name for f in made)}"


def scalar(expression: exp.Expr) -> str:
    """A scalar expression as it is printed."""

    def plain(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Identifier) and _PLAIN.fullmatch(part.name):
            return exp.to_identifier(part.name, quoted=False)
        return part

    return expression.transform(plain).sql(DIALECT)


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else exp.to_identifier(name, quoted=True).sql(DIALECT)


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


def _names(names: Iterable[str]) -> str:
    return _list(map(_name, names))


def _by(names: tuple[str, ...]) -> str:
    return f"by {_names(names)} " if names else ""


def _conditions(*conditions: exp.Expr) -> str:
    found = [part for condition in conditions for part in conjuncts(condition)]
    return _list(map(scalar, found)) if found else "[TRUE]"


def _outputs(outputs: Iterable[tuple[str, exp.Expr]]) -> str:
    return _list(_output(name, e) for name, e in outputs)


def _output(name: str, expression: exp.Expr) -> str:
    if isinstance(expression, exp.Column) and expression.name == name:
        return _name(name)
    return f"{_name(name)} = {scalar(expression)}"


def _scanned(scan: Scan) -> str:
    """The table, what it is called if not by its own name, and its columns; each by itself if they have other names."""
    pairs = list(zip(scan.columns, scan.names, strict=True))
    alias = scan.names[0].removesuffix(f".{scan.columns[0]}")
    if any(name != f"{alias}.{column}" for column, name in pairs):
        return f"{_name(scan.table)} {_list(f'{_name(column)} as {_name(name)}' for column, name in pairs)}"
    called = "" if alias == scan.table else f" as {_name(alias)}"
    return f"{_name(scan.table)}{called} {_names(scan.columns)}"


def _rows(node: Values) -> str:
    if len(node.rows) > MOST_ROWS:
        return f" of {len(node.rows)} rows"
    return "".join(f" ({', '.join(map(scalar, row))})" for row in node.rows) or " of no rows"
