"""Beside few rows, the part of a site is reduced to the rows that they meet:

    F join E on e = f    is    F join (E semi join (the distinct f of F) on e = f) on e = f        F few, E at a site

That is an equality of the algebra, and changes no answer. The keys on the right of such a semi join are what is sent to
the site, unless it finds them there; where they are too many, the part is asked for whole. A join of several relations
is put into an order in which each site is visited once, where that can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from matview.algebra.conditions import filtered
from matview.algebra.nodes import Filter, Join, Node, Outer, Semi, rebuilt
from matview.algebra.origins import origins
from matview.algebra.scalars import columns_in, conjunction, conjuncts
from matview.delta.join import along
from matview.delta.signed import KEY_PREFIX, only
from matview.plan.sites.flat import flat
from matview.plan.sites.links import Link, between, kinds_of, links, same
from matview.plan.sites.loose import distinct_keys, loosened
from matview.plan.sites.parts import Parts


class Narrowing:
    """`made` are the semi joins whose right side is to be sent to the site of the left."""

    def __init__(self, parts: Parts) -> None:
        self.made: set[Semi] = set()
        self._parts = parts
        self._done: dict[Node, Node] = {}

    def of(self, node: Node) -> Node:
        """The same rows in the same columns."""
        if not self._parts.is_remote(node) or self._parts.is_part(node):
            return node
        if node not in self._done:
            self._done[node] = self._narrowed(node)
        return self._done[node]

    def _narrowed(self, node: Node) -> Node:
        match node:
            case Semi() if node in self.made:
                made = replace(node, right=self.of(node.right))
                self.made.add(made)
                return made
            case Join():
                return only(self._join(node), node.names)
            case Semi():
                return self._semi(node)
            case Outer("left", left, right, on):
                narrow = self.of(self._by_few(right, left, on))
                return replace(node, left=self.of(left), right=narrow, sent=self._sent(node))
            case Filter(input, condition) if self._parts.is_part(input):
                return self._filter(node, input, condition)
        return rebuilt(node, tuple(map(self.of, node.inputs)))

    def _filter(self, node: Filter, input: Node, condition: exp.Expr) -> Node:
        """What the site can be told of the condition it is told."""
        every = conjuncts(condition)
        said = [c for c in every if self._parts.is_part(Filter(input, c))]
        left = [c for c in every if c not in said]
        return Filter(Filter(input, conjunction(*said)), conjunction(*left)) if said else node

    def _semi(self, node: Semi) -> Node:
        """Of the right, only what the left meets matters; and the other way round, unless what meets nothing is asked
        for."""
        left, right = node.left, node.right
        if self._wants(right, left):
            right = self._by_few(right, left, node.on)
        elif node.kind == "semi" and self._wants(left, right):
            left = self._by_few(left, right, node.on)
        return replace(node, left=self.of(left), right=self.of(right), sent=self._sent(node))

    def _sent(self, node: Semi | Outer) -> int | None:
        """The side that is small; how large an answer is Spark sees when it is there."""
        return None if self._parts.is_remote(node.right) else node.sent

    def _wants(self, node: Node, by: Node) -> bool:
        return self._parts.is_remote(node) and self._parts.leads(by) and not self._parts.leads(node)

    def _by_few(self, node: Node, by: Node, on: exp.Expr) -> Node:
        if not self._wants(node, by):
            return node
        found = links(conjuncts(on), kinds_of((node, by)))
        return self._reduced(node, between(found, node.names, by.names), by)

    # reducing ---------------------------------------------------------------------------------------------------------

    def _reduced(self, node: Node, found: Sequence[Link], by: Node) -> Node:
        """The rows that can meet `by`, and perhaps others: said as close to the tables as can be."""
        if not found or self._parts.leads(node):
            return node
        if self._parts.is_part(node) or not self._parts.is_remote(node):
            return self._semi_joined(node, found, by)
        inputs = list(node.inputs)
        for place, below in enumerate(node.inputs):
            moved = [
                replace(link, own=own)
                for link in found
                for at, own in origins(node, link.own)
                if at == place and own in below.names
            ]
            inputs[place] = self._reduced(below, moved, by)
        return rebuilt(node, tuple(inputs))

    def _semi_joined(self, node: Node, found: Sequence[Link], by: Node) -> Node:
        names, site = tuple(dict.fromkeys(link.other for link in found)), self._parts.site(node)
        there = None if site is None else loosened(self._parts, by, names, site)
        if there is None and not self._parts.can_be_sent(by):
            return node
        keys = distinct_keys(by if there is None else there, names)
        made = Semi("semi", node, keys, conjunction(*(same(link, KEY_PREFIX) for link in found)))
        if self._parts.is_part(node):
            self.made.add(made)
        return made

    # joins ------------------------------------------------------------------------------------------------------------

    def _join(self, node: Join) -> Node:
        """Conditions of one relation are told to its site, if that can be; the others wait until all is joined."""
        given, on = flat(node)
        pairs = [self._told(part, tuple(c for c in on if _is_of(c, part))) for part in given]
        parts, late = [part for part, _ in pairs], [c for _, some in pairs for c in some]
        across = tuple(c for c in on if columns_in(c) and not any(_is_of(c, part) for part in given))
        constant = [c for c in on if not columns_in(c)]
        return filtered(self._joined(parts, across), (*late, *constant))

    def _told(self, part: Node, conditions: tuple[exp.Expr, ...]) -> tuple[Node, tuple[exp.Expr, ...]]:
        """A relation with those of its conditions that may stand below a join, and those that are left."""
        below, every = part, conditions
        if isinstance(part, Filter) and self._parts.is_part(part.input) and not self._parts.is_part(part):
            below, every = part.input, (*conjuncts(part.condition), *conditions)
        if not self._parts.is_part(below):
            return filtered(below, every), ()
        said = tuple(c for c in every if self._parts.is_part(Filter(below, c)))
        return filtered(below, said), tuple(c for c in every if c not in said)

    def _joined(self, parts: list[Node], on: tuple[exp.Expr, ...]) -> Node:
        """In an order that leads from few rows to what they meet, site by site."""
        ordering = _Ordering(self._parts, on, links(on, kinds_of(parts)))
        first = ordering.first(parts)
        if first is None:
            groups = list(map(self.of, ordering.grouped(parts)))
            return Join(along(groups[0], groups[1:], on), _across(groups, on)) if len(groups) > 1 else groups[0]
        left = [part for part in parts if part is not first]
        start = ordering.at_its_site(first, left)
        left = [part for part in left if part not in start]
        prefixes = [first, ordering.together([first, *start])] if start else [first]
        joined = self.of(prefixes[-1])
        while left:
            group = ordering.next(joined.names, left)
            left = [part for part in left if part not in group]
            part = ordering.together(group)
            if self._parts.is_remote(part):
                by = ordering.telling(prefixes, group)
                part = self._reduced(part, between(ordering.links, part.names, by.names), by)
            narrow = self.of(part)
            joined = Join((joined, narrow), _ready(on, joined, narrow))
            prefixes.append(joined)
        return joined


class _Ordering:
    """In which order the relations of a join are put together."""

    def __init__(self, parts: Parts, on: tuple[exp.Expr, ...], found: Sequence[Link]) -> None:
        self._parts = parts
        self._on = on
        self.links = found

    def first(self, parts: Sequence[Node]) -> Node | None:
        """What leads to the others, if anything does: rather few rows, and those that need not be asked for."""
        leading = [part for part in parts if self._parts.leads(part)]
        return min(
            leading, key=lambda part: (not self._parts.can_be_sent(part), self._parts.is_remote(part)), default=None
        )

    def grouped(self, parts: Sequence[Node]) -> list[Node]:
        """Without few rows: what is joined within a site is joined there."""
        left, groups = list(parts), list[Node]()
        while left:
            group = [left[0], *self._group(self._parts.site(left[0]), left[0].names, left[1:])]
            whole = self.together(group)
            chosen = group if self._parts.is_part(whole) else group[:1]
            groups.append(self.together(chosen))
            left = [part for part in left if part not in chosen]
        return groups

    def at_its_site(self, change: Node, left: Sequence[Node]) -> list[Node]:
        """What a change is joined with at its own site."""
        group = self._group(self._parts.site_of_change(change), change.names, left)
        return group if group and self._parts.is_part(self.together([change, *group])) else []

    def next(self, known: Sequence[str], left: Sequence[Node]) -> list[Node]:
        """A site all of whose relations can be reached by now; else what leads on; else whatever is left."""
        reached = [part for part in left if between(self.links, part.names, known)]
        groups = [self._group(self._parts.site(part), known, left) for part in reached if self._parts.is_part(part)]
        groups = [group if self._parts.is_part(self.together(group)) else group[:1] for group in groups]
        for group in groups:
            site = self._parts.site(group[0])
            if all(part in group for part in left if self._parts.site(part) == site):
                return group
        joined = [part for part in left if self._is_joined(part, known)]
        here = [part for part in joined if not self._parts.is_remote(part)]
        one = next(iter(here or [part for part in joined if not self._parts.is_part(part)]), None)
        return [one] if one is not None else next(iter(groups), [next(iter(joined), left[0])])

    def telling(self, prefixes: Sequence[Node], group: Sequence[Node]) -> Node:
        """The least of what is joined by now that leads to each relation of a group."""
        for prefix in prefixes:
            if len(self._reachable(prefix.names, group)) == len(group):
                return prefix
        return prefixes[-1]

    def together(self, group: Sequence[Node]) -> Node:
        """The group as one relation."""
        if len(group) == 1:
            return group[0]
        return Join(along(group[0], list(group[1:]), self._on), _within(group, self._on))

    def _group(self, site: str | None, known: Sequence[str], left: Sequence[Node]) -> list[Node]:
        own = [part for part in left if site is not None and self._parts.site(part) == site]
        return self._reachable(known, [part for part in own if self._parts.is_part(part)])

    def _reachable(self, known: Sequence[str], parts: Sequence[Node]) -> list[Node]:
        """Those that equalities lead to, one after another."""
        found, names, growing = list[Node](), set(known), True
        while growing:
            more = [part for part in parts if part not in found and between(self.links, part.names, names)]
            found += more
            names.update(name for part in more for name in part.names)
            growing = bool(more)
        return found

    def _is_joined(self, part: Node, known: Sequence[str]) -> bool:
        own, both = set(part.names), {*part.names, *known}
        return any(columns_in(c) & own and columns_in(c) <= both and columns_in(c) - own for c in self._on)


def _is_of(condition: exp.Expr, part: Node) -> bool:
    """It speaks of this relation alone."""
    return bool(columns_in(condition)) and columns_in(condition) <= set(part.names)


def _within(group: Sequence[Node], on: tuple[exp.Expr, ...]) -> tuple[exp.Expr, ...]:
    names = {name for part in group for name in part.names}
    return tuple(c for c in on if columns_in(c) <= names)


def _across(groups: Sequence[Node], on: tuple[exp.Expr, ...]) -> tuple[exp.Expr, ...]:
    """What no group has seen to by itself."""
    inside = [c for group in groups if isinstance(group, Join) for c in flat(group)[1]]
    return tuple(c for c in on if c not in inside)


def _ready(on: tuple[exp.Expr, ...], one: Node, other: Node) -> tuple[exp.Expr, ...]:
    """The conditions that hold between two, and of neither alone."""
    both = {*one.names, *other.names}
    found = (c for c in on if columns_in(c) <= both)
    return tuple(c for c in found if not columns_in(c) <= set(one.names) and not columns_in(c) <= set(other.names))
