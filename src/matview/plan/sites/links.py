"""Equalities that join two relations, and by which the keys of one can be looked up in the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from matview.algebra.nodes import Node
from matview.algebra.scalars import column

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_EXACT = frozenset({"boolean", "string", "binary", "date", "timestamp", "timestamp_ntz"})


@dataclass(frozen=True, slots=True)
class Link:
    """`own`, a column of the relation at hand, equals `other`; nulls are equal, too, or never are."""

    own: str
    other: str
    nulls: bool

    @property
    def turned(self) -> Link:
        return Link(self.other, self.own, self.nulls)


def links(conditions: Iterable[exp.Expr], kinds: dict[str, str]) -> list[Link]:
    """The equalities of columns whose values every database compares alike."""
    return [link for condition in conditions for link in _links(condition, kinds)]


def kinds_of(nodes: Iterable[Node]) -> dict[str, str]:
    """The types of columns by their names."""
    return {f.name: f.type for node in nodes for f in node.fields}


def between(found: Sequence[Link], own: Collection[str], others: Collection[str]) -> list[Link]:
    """Those that join the one relation to the other, each seen from the first."""
    both = (one for link in found for one in (link, link.turned))
    return [link for link in both if link.own in own and link.other in others]


def same(link: Link, prefix: str) -> exp.Expr:
    """The link as a condition; the other column is called something else, with a prefix."""
    equal = exp.NullSafeEQ if link.nulls else exp.EQ
    return equal(this=column(link.own), expression=column(prefix + link.other))


def _links(condition: exp.Expr, kinds: dict[str, str]) -> Iterator[Link]:
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return
    one, other = condition.left.unnest(), condition.right.unnest()
    are_columns = isinstance(one, exp.Column) and isinstance(other, exp.Column)
    if are_columns and _are_alike(kinds.get(one.name, ""), kinds.get(other.name, "")):
        yield Link(one.name, other.name, isinstance(condition, exp.NullSafeEQ))


def _are_alike(one: str, other: str) -> bool:
    """Floating numbers are never looked up: there, what is equal depends on who compares."""
    if one in _INTEGERS and other in _INTEGERS:
        return True
    return one == other and (one in _EXACT or one.startswith("decimal"))
