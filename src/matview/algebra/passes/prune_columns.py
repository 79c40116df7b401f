"""project A E = project A E[A]: every operator gives only the columns that are used above it, every scan reads no more.

The columns of the root stay, rows keep their multiplicities, and what remains keeps its order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from sqlglot import exp

from matview.algebra.nodes import (
    WEIGHT,
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
    rebuilt,
)
from matview.algebra.scalars import column, columns_in

Names = frozenset[str]
Outputs = tuple[tuple[str, exp.Expr], ...]


def prune_columns(node: Node) -> Node:
    return _pruned(node, frozenset(node.names))


def _pruned(node: Node, used: Names) -> Node:
    """The node with at least the columns that are used, and at least one."""
    match node:
        case Scan():
            return _scan(node, used)
        case Change(scan):
            return replace(node, scan=_scan(scan, used - {WEIGHT}))
        case Stored() | Values() | Opaque():
            return node
        case UnionAll():
            return _union(node, used)
        case SetOp():
            return rebuilt(node, tuple(map(prune_columns, node.inputs)))
        case Join(parts, on):
            used |= _read(on)
            return rebuilt(node, tuple(_pruned(part, used & set(part.names)) for part in parts))
        case Outer(_, left, right, on):
            used |= columns_in(on)
            return rebuilt(node, (_pruned(left, used & set(left.names)), _pruned(right, used & set(right.names))))
        case Semi(_, left, right, on):
            met = frozenset(columns_in(on))
            return rebuilt(
                node, (_pruned(left, (used | met) & set(left.names)), _pruned(right, met & set(right.names)))
            )
    return _unary(node, used)


def _unary(node: Filter | Project | Aggregate | Window | TopK | Repeat | Unnest, used: Names) -> Node:
    match node:
        case Filter(input, condition):
            return replace(node, input=_pruned(input, used | columns_in(condition)))
        case Project(input, outputs):
            outputs = _outputs(outputs, used) or outputs[:1]
            return Project(_pruned(input, _read(e for _, e in outputs)), outputs)
        case Aggregate(input, keys, aggregates):
            calls = _outputs(aggregates, used) or (() if keys else aggregates[:1])
            return Aggregate(_pruned(input, _read(e for _, e in calls) | set(keys)), keys, calls)
        case Window():
            return _window(node, used)
        case TopK(input, order):
            return replace(node, input=_pruned(input, used | _read(order)))
        case Repeat(input, times):
            return replace(node, input=_pruned(input, (used or frozenset(node.names[:1])) | {times}))
        case Unnest(input, generator):
            return replace(node, input=_pruned(input, used & set(input.names) | columns_in(generator)))


def _read(expressions: Iterable[exp.Expr]) -> Names:
    return frozenset(name for e in expressions for name in columns_in(e))


def _outputs(outputs: Outputs, used: Names) -> Outputs:
    return tuple(output for output in outputs if output[0] in used)


def _scan(node: Scan, used: Names) -> Scan:
    """Without its key, it is a bag."""
    chosen = [i for i, name in enumerate(node.names) if name in used] or [0]
    fields = tuple(node.fields[i] for i in chosen)
    key = node.key if set(node.key) <= {f.name for f in fields} else ()
    return Scan(node.table, tuple(node.columns[i] for i in chosen), fields, key)


def _window(node: Window, used: Names) -> Node:
    functions = _outputs(node.functions, used)
    used &= set(node.input.names)
    if not functions:
        return _pruned(node.input, used)
    return Window(
        _pruned(node.input, used | set(node.partition) | _read(e for _, e in functions)), node.partition, functions
    )


def _union(node: UnionAll, used: Names) -> Node:
    """Columns are matched by position, so all parts lose the same ones."""
    chosen = [i for i, name in enumerate(node.names) if name in used] or [0]
    return UnionAll(tuple(_exactly(part, [part.names[i] for i in chosen]) for part in node.parts))


def _exactly(node: Node, names: Collection[str]) -> Node:
    """The node with these columns and no others, in this order."""
    made = _pruned(node, frozenset(names))
    return made if made.names == tuple(names) else Project(made, tuple((name, column(name)) for name in names))
