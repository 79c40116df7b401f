"""Where a column comes from, through operators that hand it on as it is."""

from __future__ import annotations

from sqlglot import exp

from matview.algebra.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    Outer,
    Project,
    Repeat,
    Semi,
    SetOp,
    UnionAll,
    Unnest,
    Window,
)


def origins(node: Node, name: str) -> list[tuple[int, str]]:
    """The inputs, by place, whose column a column is: all of its values are there, and only they matter there."""
    match node:
        case Project(_, outputs):
            source = dict(outputs)[name]
            return [(0, source.name)] if isinstance(source, exp.Column) else []
        case Filter() | Semi():
            return [(0, name)]
        case Aggregate(_, names) | Window(_, names):
            return [(0, name)] if name in names else []
        case Repeat(input) | Unnest(input) | Outer("left", input):
            return [(0, name)] if name in input.names else []
        case Join(parts):
            return [(place, name) for place, part in enumerate(parts) if name in part.names]
        case UnionAll() | SetOp():
            index = node.names.index(name)
            return [(place, part.names[index]) for place, part in enumerate(node.inputs)]
    return []
