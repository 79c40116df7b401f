"""An expression cut at its sites: what each is asked, and what the warehouse makes of the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matview.algebra.nodes import Filter, Join, Node, Project, Semi, Stored, parts, rebuilt
from matview.delta.signed import kept
from matview.plan.sites.distributed import distributed
from matview.plan.sites.flat import flat
from matview.plan.sites.narrowed import Narrowing
from matview.plan.sites.parts import Parts, Where

ANSWER, KEYS = "__answer_", "__keys_"


@dataclass(frozen=True)
class Ask:
    """A question to a site; `name` stands for its answer in later expressions.

    `node` reads tables of the site, their changes, and what is sent along: relations of these names, which the
    warehouse computes first, over answers that it has by then.
    """

    name: str
    site: str
    node: Node
    sent: tuple[tuple[str, Node], ...] = ()

    @property
    def needs(self) -> frozenset[str]:
        """The answers that it waits for."""
        leaves = (leaf for _, node in self.sent for leaf in parts(node))
        return frozenset(leaf.view for leaf in leaves if isinstance(leaf, Stored) and leaf.view.startswith(ANSWER))


@dataclass(frozen=True)
class Cut:
    """Questions, each after those whose answers it needs, and the expression over the answers."""

    asks: tuple[Ask, ...]
    node: Node


def cut(node: Node, where: Where) -> Cut:
    """The same rows, with every table of a site asked for."""
    known = Parts(where)
    narrowing = Narrowing(known)
    narrow = narrowing.of(node)
    cutting = _Cutting(known, narrowing.made)
    left = cutting.of(narrow)
    return Cut(tuple(cutting.asks.values()), left)


class _Cutting:
    def __init__(self, parts: Parts, made: set[Semi]) -> None:
        self.asks: dict[Node, Ask] = {}
        self._parts = parts
        self._made = made
        self._done: dict[Node, Node] = {}

    def of(self, node: Node) -> Node:
        if not self._parts.is_remote(node):
            return node
        if node not in self._done:
            self._done[node] = self._cut(node)
        return self._done[node]

    def _cut(self, node: Node) -> Node:
        sent, part = list[Semi](), node
        while isinstance(part, Semi) and part in self._made:
            sent.append(part)
            part = part.left
        if not sent and isinstance(part, Project | Filter) and isinstance(self._done.get(part.input), Stored):
            return rebuilt(part, (self._done[part.input],))  # asked for already
        if self._parts.is_part(part):
            return self._asked(node, part, sent)
        return rebuilt(node, tuple(map(self.of, node.inputs)))

    def _asked(self, node: Node, part: Node, sent: Sequence[Semi]) -> Stored:
        site = self._parts.site(part)
        assert site is not None
        keys = {semi: self.of(semi.right) for semi in sent if not self._parts.is_at(semi.right, site)}
        names = {semi: f"{KEYS}{len(self.asks)}_{n}" for n, semi in enumerate(keys)}
        asked = distributed(_among(part, sent, names) if sent else part)
        ask = Ask(f"{ANSWER}{len(self.asks)}", site, asked, tuple((names[semi], node) for semi, node in keys.items()))
        self.asks[node] = ask
        return Stored(ask.name, part.fields)


def _among(part: Node, sent: Sequence[Semi], names: Mapping[Semi, str]) -> Node:
    """The rows of the part that meet the keys: these are distinct, and a row has at most one of them. They are sent
    along under their names, or known at the site."""
    keys = [Stored(names[semi], semi.right.fields) if semi in names else semi.right for semi in sent]
    inner, on = flat(part) if isinstance(part, Join) else ([part], ())
    conditions = (*(semi.on for semi in sent), *on)
    return Project(Join((*keys, *inner), conditions), kept(part.names))


# the order ------------------------------------------------------------------------------------------------------------


def stages(asks: Sequence[Ask]) -> list[list[tuple[str, tuple[Ask, ...]]]]:
    """Who is asked what, stage after stage; the sites of a stage at the same time.

    A site is asked when all of its questions can be: once. Only where two sites wait for each other is one of them
    asked before that, and then again.
    """
    left, done, order = list(asks), set[str](), list[list[tuple[str, tuple[Ask, ...]]]]()
    while left:
        ready = [ask for ask in left if ask.needs <= done]
        sites = dict.fromkeys(ask.site for ask in ready)
        whole = [site for site in sites if all(ask in ready for ask in left if ask.site == site)]
        chosen = whole or [max(sites, key=lambda site: sum(ask.site == site for ask in ready))]
        stage = [(site, tuple(ask for ask in ready if ask.site == site)) for site in chosen]
        order.append(stage)
        asked = {ask.name for _, some in stage for ask in some}
        done |= asked
        left = [ask for ask in left if ask.name not in asked]
    return order
