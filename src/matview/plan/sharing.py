"""What the views that are refreshed together have in common is computed once (M17).

Expressions over changes are looked for that stand in several places. Views read different columns of the same tables,
so first each view is given all the columns that any of them reads: the joins of a change are then the same expression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matview.algebra.nodes import Change, Node, Scan, SetOp, Stored, UnionAll, parts, rebuilt, transform, walk
from matview.algebra.schema import Field, Schema
from matview.plan.definition import Part
from matview.remembered import Remembered


@dataclass(frozen=True)
class Shared:
    """Expressions to be computed first, by name, and the expressions that use them."""

    first: tuple[tuple[str, Node], ...]
    nodes: tuple[Node, ...]

    def takes_part(self, node: Node) -> bool:
        """One of the expressions that use what is computed first."""
        names = dict(self.first)
        return any(isinstance(leaf, Stored) and leaf.view in names for leaf in parts(node))


def share(nodes: Sequence[Node], prefix: str = "__shared") -> Shared:
    """The largest expressions over changes that stand in several places, each under a name; smaller ones come first."""
    names: dict[Node, str] = {}
    first = []
    for node in sorted(_common(nodes), key=lambda node: sum(1 for _ in walk(node))):
        inner = rebuilt(node, tuple(_using(part, names) for part in node.inputs))
        names[node] = f"{prefix}_{len(names) + 1}"
        first.append((names[node], inner))
    return Shared(tuple(first), tuple(_using(node, names) for node in nodes))


def _common(nodes: Sequence[Node]) -> list[Node]:
    """Stands in several places, and not only inside one that does."""
    seen = Counter(part for node in nodes for part in walk(node) if _is_worth_it(part))
    repeated = [part for part, times in seen.items() if times > 1]
    inside = {
        part: max((seen[other] for other in repeated if other != part and part in other.inputs), default=0)
        for part in repeated
    }
    return [part for part in repeated if seen[part] > inside[part]]


def _is_worth_it(node: Node) -> bool:
    """It follows from a change, and takes more than to read that change."""
    leaves = {type(part) for part in walk(node)}
    return Change in leaves and bool(leaves & {Scan, Stored})


def _using(node: Node, names: Mapping[Node, str]) -> Node:
    if node in names:
        return Stored(names[node], node.fields)
    return rebuilt(node, tuple(_using(part, names) for part in node.inputs))


# the same columns for all ---------------------------------------------------------------------------------------------


def widened(views: Sequence[Part], schemas: Mapping[str, Schema]) -> list[Part]:
    """Each part reads of every table what any of them reads, where that leaves what it shows as it is."""
    key = (tuple(map(id, views)), tuple(sorted(schemas.items())))
    return _WIDE.get(key, lambda: (tuple(views), _widened(views, schemas)))[1]


_WIDE: Remembered[tuple[tuple[Part, ...], list[Part]]] = Remembered(100)
"""The same views are refreshed together again and again; what is kept here stays the one it is."""


def _widened(views: Sequence[Part], schemas: Mapping[str, Schema]) -> list[Part]:
    wanted: dict[str, dict[str, None]] = {}
    for part in views:
        for leaf in walk(part.node):
            if isinstance(leaf, Scan):
                wanted.setdefault(leaf.table, {}).update(dict.fromkeys(leaf.columns))
    return [_wide(part, wanted, schemas) for part in views]


def _wide(part: Part, wanted: Mapping[str, Mapping[str, None]], schemas: Mapping[str, Schema]) -> Part:
    if any(isinstance(node, UnionAll | SetOp) for node in walk(part.node)):
        return part  # their columns are matched by position

    def widen(node: Node) -> Node:
        if isinstance(node, Scan) and node.table in schemas:
            return _wide_scan(node, list(wanted[node.table]), schemas[node.table])
        return node

    node = transform(part.node, widen)
    if node.names != part.node.names:
        return part
    if part.summary is None:
        return replace(part, node=node)
    aggregate = part.summary.aggregate
    wide = replace(aggregate, input=transform(aggregate.input, widen))
    return replace(part, node=node, summary=replace(part.summary, aggregate=wide))


def _wide_scan(scan: Scan, columns: list[str], schema: Schema) -> Scan:
    """The columns in the table's own order, named as those that are there already."""
    prefixes = {f.name.removesuffix(c) for f, c in zip(scan.fields, scan.columns, strict=True)}
    if len(prefixes) != 1:
        return scan
    (prefix,) = prefixes
    chosen = [c for c in schema.columns if c.name in columns]
    fields = tuple(Field(prefix + c.name, c.type, c.nullable) for c in chosen)
    known = tuple(prefix + name for name in schema.key)
    key = known if set(known) <= {f.name for f in fields} else ()
    return Scan(scan.table, tuple(c.name for c in chosen), fields, key)
