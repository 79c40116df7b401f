"""Parts: expressions over the tables of one site that the site can be asked, whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from matview.algebra.nodes import (
    Change,
    Join,
    Node,
    Outer,
    Scan,
    Semi,
    Stored,
    Values,
)

Sayable = Callable[[Node], bool]
"""Whether an operator, over inputs that the site has, can be said there so that it means what it means in Spark."""

Site = str | None
"""The name of a source; None is the warehouse itself, whatever sources are called."""


FEW = 1000
"""Tables of the warehouse with no more rows are looked up at a site, if they are joined with one of its tables."""
MOST_SENT = 100_000
"""A site is sent no more rows: those are on the driver, all at once."""


@dataclass(frozen=True)
class Where:
    """The sites of tables that are not in the warehouse, what sites can be asked, and what leads to few rows of them.

    Changes that are `kept` are known to the warehouse alone; others of a site's tables are known there as well.
    """

    sites: Mapping[str, str]
    sayable: Sayable
    few: frozenset[str] = field(default_factory=frozenset)
    """Tables of few rows."""
    many: frozenset[str] = field(default_factory=frozenset)
    """Tables whose changes are too many to be sent."""
    kept: frozenset[str] = field(default_factory=frozenset)
    sends: bool = True

    def site(self, table: str) -> Site:
        return self.sites.get(table)

    def site_of_change(self, table: str) -> Site:
        return None if table in self.kept else self.sites.get(table)

    def sending_nothing(self, here: frozenset[str]) -> Where:
        """Sites are asked for what they find without help, however much that is."""
        return replace(self, kept=here, sends=False)


def located(
    sites: Mapping[str, str],
    sayable: Sayable,
    rows: Mapping[str, int],
    changed: Mapping[str, int],
    here: Collection[str],
) -> Where:
    """What is known when a view is refreshed: how many rows tables of the warehouse have, how many tuples of tables
    changed, and `here`, the tables whose changes the sites do not have by themselves."""
    few = frozenset(name for name, count in rows.items() if count <= FEW and name not in sites)
    many = frozenset(name for name, count in changed.items() if count > MOST_SENT)
    return Where(sites, sayable, few, many, many & frozenset(here))


class Size(IntEnum):
    """How many rows, as far as can be told: few, so many as a change may have, or any number."""

    FEW = 0
    CHANGE = 1
    ANY = 2


class Parts:
    """What is known of expressions; each is looked at once, in however many places it stands."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self._at: dict[Node, tuple[frozenset[Site], frozenset[Site]]] = {}
        self._is_part: dict[Node, bool] = {}
        self._size: dict[Node, Size] = {}

    def is_remote(self, node: Node) -> bool:
        """It reads a table of some site."""
        return bool(self._sites(node)[0] - {None})

    def site(self, node: Node) -> str | None:
        """The site that has all of it: tables, and perhaps their changes."""
        read, changed = self._sites(node)
        (site,) = read if len(read) == 1 else (None,)
        return site if changed <= {site} else None

    def site_of_change(self, node: Node) -> str | None:
        """The site of a change alone, or of what follows from it alone."""
        read, changed = self._sites(node)
        (site,) = changed if len(changed) == 1 else (None,)
        return None if read else site

    def is_part(self, node: Node) -> bool:
        """A site can be asked for it, whole."""
        return self.site(node) is not None and self._can_be_said(node)

    def is_at(self, node: Node, site: str) -> bool:
        """The site can be asked for it, or for what follows from a change there."""
        return site in (self.site(node), self.site_of_change(node)) and self._can_be_said(node)

    def leads(self, node: Node) -> bool:
        """It follows from a change, or from a table of few rows: beside it, only what it meets matters."""
        return self._sized(node) <= Size.CHANGE

    def can_be_sent(self, node: Node) -> bool:
        """Few rows, as far as can be told: they follow from a change of few, or from a table of few."""
        return self.where.sends and self._sized(node) == Size.FEW

    def _sites(self, node: Node) -> tuple[frozenset[Site], frozenset[Site]]:
        """Where the tables are that it reads, and those whose changes it reads."""
        if node not in self._at:
            self._at[node] = self._found(node)
        return self._at[node]

    def _found(self, node: Node) -> tuple[frozenset[Site], frozenset[Site]]:
        match node:
            case Scan(table):
                return frozenset({self.where.site(table)}), frozenset()
            case Change(scan):
                return frozenset(), frozenset({self.where.site_of_change(scan.table)})
            case Values():
                return frozenset(), frozenset()
        if not node.inputs:
            return frozenset({None}), frozenset()
        below = [self._sites(part) for part in node.inputs]
        none = frozenset[Site]()
        return none.union(*(read for read, _ in below)), none.union(*(changed for _, changed in below))

    def _can_be_said(self, node: Node) -> bool:
        if node not in self._is_part:
            below = all(map(self._can_be_said, node.inputs))
            self._is_part[node] = below and self.where.sayable(node)
        return self._is_part[node]

    def _sized(self, node: Node) -> Size:
        if node not in self._size:
            self._size[node] = self._measured(node)
        return self._size[node]

    def _measured(self, node: Node) -> Size:
        match node:
            case Values():
                return Size.FEW
            case Change(scan):
                return Size.CHANGE if scan.table in self.where.many else Size.FEW
            case Scan(name) | Stored(name):
                return Size.FEW if name in self.where.few else Size.ANY
            case Join(parts):
                return min(map(self._sized, parts))
            case Semi("semi", left, right):
                return min(self._sized(left), self._sized(right))
            case Semi(_, left) | Outer("left", left):
                return self._sized(left)
        return max(map(self._sized, node.inputs), default=Size.ANY)
