"""Which columns tell the rows of a relation apart, nulls being equal to one another.

Within a join, a key determines the other columns of its part, and an equality determines each side from the other; a
key column that the rest determines can go. So a lookup join keeps the key of the side that looks up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.conditions import Conditions, Fields, constants, each, equal_columns, fields_of
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

Key = tuple[str, ...]


def key_of(node: Node) -> Key | None:
    """Fields that no two rows share, as few as can be told; none at all: there is at most one row. None: a bag."""
    match node:
        case Scan(key=key):
            return key or None
        case Values(rows=rows):
            return () if len(rows) <= 1 else None
        case Change() | Stored() | Repeat() | Opaque():
            return None
        case Join():
            return _join(node)
        case Outer():
            return _outer(node)
        case Semi(left=left):
            return key_of(left)
        case UnionAll():
            return _union(node)
        case SetOp():
            return _setop(node)
        case Filter() | Project() | Aggregate() | Window() | TopK() | Unnest():
            return _unary(node)


def _unary(node: Filter | Project | Aggregate | Window | TopK | Unnest) -> Key | None:
    key = key_of(node.input)
    match node:
        case Aggregate(keys=keys):
            return key if key is not None and set(key) <= set(keys) else keys
        case TopK(limit=limit) if limit <= 1:
            return ()
        case _ if key is None:
            return None
        case Filter(_, condition):
            return _fewest(key, (), _facts(each((condition,)), fields_of(node)))
        case Project(_, outputs):
            return _renamed(key, outputs)
        case Unnest(_, generator, made):
            return (*key, made[0].name) if isinstance(generator, exp.Posexplode) else None
        case Window() | TopK():
            return key


def _renamed(key: Key, outputs: Iterable[tuple[str, exp.Expr]]) -> Key | None:
    """The key under the names that a projection gives it, if all of it is left."""
    names: dict[str, str] = {}
    for new, expression in outputs:
        if isinstance(expression, exp.Column):
            names.setdefault(expression.name, new)
    return tuple(names[name] for name in key) if set(key) <= set(names) else None


# what determines what -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fact:
    """Rows that agree on `by` agree on `told`."""

    by: frozenset[str]
    told: frozenset[str]


def _facts(conditions: Conditions, fields: Fields) -> list[_Fact]:
    """What conditions tell about the rows that meet them."""
    made = [_Fact(frozenset(), frozenset({name})) for name, _ in constants(conditions, fields)]
    for one, other in equal_columns(conditions, fields):
        made += [_Fact(frozenset({one}), frozenset({other})), _Fact(frozenset({other}), frozenset({one}))]
    return made


def _determined(names: Collection[str], facts: list[_Fact]) -> set[str]:
    """All columns on which rows agree that agree on these."""
    found, before = set(names), -1
    while len(found) != before:
        before = len(found)
        found.update(name for fact in facts if fact.by <= found for name in fact.told)
    return found


def _fewest(key: Key, given: Collection[str], facts: list[_Fact]) -> Key:
    """The key without the columns that its others, and those given, determine; later ones go first."""
    kept = list(key)
    for name in reversed(key):
        others = [other for other in kept if other != name]
        if name in _determined([*others, *given], facts):
            kept = others
    return tuple(kept)


# several inputs -------------------------------------------------------------------------------------------------------


def _join(node: Join) -> Key | None:
    facts = _facts(each(node.on), fields_of(node))
    key: Key = ()
    for part in node.parts:
        own = key_of(part)
        if own is None:
            return None
        key += own
        facts.append(_Fact(frozenset(own), frozenset(part.names)))
    return _fewest(key, (), facts)


def _outer(node: Outer) -> Key | None:
    """A row of the left has its matches, or one row of nulls: the key of the right need only tell matches apart."""
    left, right = key_of(node.left), key_of(node.right)
    if left is None or right is None:
        return None
    if node.kind == "full":
        return _full(node, (*left, *right))
    facts = _facts(each((node.on,)), fields_of(*node.inputs))
    return (*left, *_fewest(right, node.left.names, facts))


def _full(node: Outer, key: Key) -> Key | None:
    """Both keys, and a column that is null only where there is no match.

    Without it, a row of the left that has none could be mistaken for one of the right that has none.
    """
    sure = [f.name for side in node.inputs for f in side.fields if not f.nullable]
    if any(name in key for name in sure):
        return key
    return (*key, sure[0]) if sure else None


def _union(node: UnionAll) -> Key | None:
    """The keys of all parts, and a column that holds another constant in each."""
    mark = next((i for i, _ in enumerate(node.names) if _marks(node, i)), None)
    found = [_positions(part) for part in node.parts]
    if mark is None or any(positions is None for positions in found):
        return None
    positions = sorted({i for one in found for i in one or ()} | {mark})
    return _same_type(node, tuple(node.names[i] for i in positions))


def _positions(part: Node) -> list[int] | None:
    key = key_of(part)
    return None if key is None else [part.names.index(name) for name in key]


def _marks(node: UnionAll, position: int) -> bool:
    values = [_constant(part, position) for part in node.parts]
    return None not in values and len(set(values)) == len(values) and len({type(v) for v in values}) == 1


def _constant(part: Node, position: int) -> str | int | None:
    """The literal that a column of the relation always is, when that is plain to see."""
    match part:
        case Filter(input):
            return _constant(input, position)
        case Project(_, outputs):
            return _literal(outputs[position][1])
    return None


def _literal(value: exp.Expr) -> str | int | None:
    if not isinstance(value, exp.Literal):
        return None
    if value.is_string:
        return str(value.this)
    return int(value.this) if value.is_int else None


def _same_type(node: UnionAll | SetOp, key: Key | None) -> Key | None:
    """The key, unless a set operation casts its columns: values that differ might then be equal."""
    return key if key is not None and all(node.field(name).type for name in key) else None


def _setop(node: SetOp) -> Key | None:
    """All rows are the left's, no more often than there; with INTERSECT they are the right's as well."""
    candidates = [node.left, node.right] if node.kind.startswith("intersect") else [node.left]
    for side in candidates:
        positions = _positions(side)
        key = None if positions is None else tuple(node.names[i] for i in positions)
        if (found := _same_type(node, key)) is not None:
            return found
    return None if node.kind.endswith("all") else node.names
