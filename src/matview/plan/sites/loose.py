"""The keys of what leads to others, said at a site that has all they follow from: then nothing has to be sent there.

A site cannot be asked for sums; but whoever only looks keys up may look up some more. So what cannot be said is left
out, as long as no key is lost:

    filter p E          E                       aggregate by k E    E, if the keys are among k
    E semi join F       E joined with the distinct keys of F, by the equalities among the conditions
"""

from __future__ import annotations

from collections.abc import Sequence

from matview.algebra.nodes import Aggregate, Filter, Join, Node, Project, Semi, UnionAll
from matview.algebra.origins import origins
from matview.algebra.scalars import column, conjuncts
from matview.delta.signed import KEY_PREFIX, kept, only
from matview.plan.sites.links import between, kinds_of, links, same
from matview.plan.sites.parts import Parts


def loosened(parts: Parts, node: Node, names: Sequence[str], site: str) -> Node | None:
    """Rows that the site can be asked for, whose columns `names` have all the values of the node's; None if there are
    none but whole tables."""
    return _Loosening(parts, site).of(node, tuple(names))


def distinct_keys(node: Node, names: Sequence[str]) -> Node:
    """The distinct values of some columns, under names of their own."""
    keys = tuple((KEY_PREFIX + name, column(name)) for name in names)
    return Aggregate(Project(node, keys), tuple(name for name, _ in keys))


class _Loosening:
    def __init__(self, parts: Parts, site: str) -> None:
        self._parts = parts
        self._site = site

    def of(self, node: Node, names: tuple[str, ...]) -> Node | None:
        if not self._parts.leads(node):
            return None
        if self._parts.is_at(node, self._site):
            return only(node, names)
        match node:
            case Semi("semi"):
                return self._semi(node, names)
            case UnionAll(inputs):
                places = [node.names.index(name) for name in names]
                found = [self.of(part, tuple(part.names[place] for place in places)) for part in inputs]
                there = [self._renamed(one, names) for one in found if one is not None]
                return UnionAll(tuple(there)) if len(there) == len(inputs) else None
            case Filter() | Aggregate() | Project():
                return self._below(node, names)
        return None

    def _below(self, node: Filter | Aggregate | Project, names: tuple[str, ...]) -> Node | None:
        sources = [origins(node, name) for name in names]
        if not all(sources):
            return None
        wanted = tuple(source for ((_, source), *_) in sources)
        found = self.of(node.input, tuple(dict.fromkeys(wanted)))  # one column may be shown under two names
        if found is None or wanted == names:
            return found
        return Project(found, tuple((name, column(was)) for name, was in zip(names, wanted, strict=True)))

    def _renamed(self, node: Node, names: tuple[str, ...]) -> Node:
        if node.names == names:
            return node
        return Project(node, tuple((name, column(was)) for name, was in zip(names, node.names, strict=True)))

    def _semi(self, node: Semi, names: tuple[str, ...]) -> Node | None:
        found = between(links(conjuncts(node.on), kinds_of(node.inputs)), node.left.names, node.right.names)
        others = tuple(dict.fromkeys(link.other for link in found))
        right = self.of(node.right, others) if found and self._parts.is_part(node.left) else None
        if right is None:
            return None
        joined = Join((distinct_keys(right, others), node.left), tuple(same(link, KEY_PREFIX) for link in found))
        made = Project(joined, kept(names))
        return made if self._parts.is_at(made, self._site) else None
