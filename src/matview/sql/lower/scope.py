"""What a name can mean at a place of a query: the relation so far, and which of its columns can be seen as what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from matview.algebra.nodes import Aggregate, Node, Project
from matview.algebra.scalars import column
from matview.sql.lower.names import Names


@dataclass(frozen=True, slots=True)
class Visible:
    """A column as the query's text may call it, and its name in the relation."""

    qualifier: str
    name: str
    column: str

    def is_called(self, name: str) -> bool:
        return self.name.casefold() == name.casefold()

    def is_of(self, qualifier: str) -> bool:
        return self.qualifier.casefold() == qualifier.casefold()


@dataclass(frozen=True, slots=True)
class Layer:
    """The columns of one query's FROM; `hidden` ones answer to their qualified names only (the keys of USING)."""

    shown: tuple[Visible, ...] = ()
    hidden: tuple[Visible, ...] = ()

    def found(self, parts: Sequence[str]) -> tuple[tuple[Visible, int], ...]:
        """What a dotted name can mean: each column with the number of parts that name it; the others are fields."""
        qualified = [v for v in self.of(parts[0]) if len(parts) > 1 and v.is_called(parts[1])]
        if qualified:
            return tuple((v, 2) for v in qualified)
        return tuple((v, 1) for v in self.shown if v.is_called(parts[0]))

    def of(self, qualifier: str) -> tuple[Visible, ...]:
        """The columns of one table, those that USING hides first, as Spark has them."""
        return tuple(v for v in (*self.hidden, *self.shown) if v.is_of(qualifier))

    def renamed(self, names: Mapping[str, str]) -> Layer:
        """The columns that are still there, under their new names."""
        return Layer(_renamed(self.shown, names), _renamed(self.hidden, names))


def _renamed(columns: tuple[Visible, ...], names: Mapping[str, str]) -> tuple[Visible, ...]:
    return tuple(replace(v, column=names[v.column]) for v in columns if v.column in names)


@dataclass(frozen=True)
class Given:
    """The rows of the queries around that a correlated subquery is evaluated for: `columns` of them, each row once."""

    rows: Node
    columns: tuple[str, ...]
    layers: tuple[Layer, ...]
    used: set[str] = field(default_factory=set, compare=False)
    """Those of `columns` that the subquery turned out to speak of."""

    def named(self, names: Sequence[str]) -> Node:
        return Project(self.rows, tuple((new, column(old)) for new, old in zip(names, self.columns, strict=True)))

    def scope(self, names: Names) -> Scope:
        """These rows alone, under new names."""
        fresh = tuple(names.fresh(f"outer.{c}") for c in self.columns)
        layers = tuple(layer.renamed(dict(zip(self.columns, fresh, strict=True))) for layer in self.layers)
        return Scope(self.named(fresh), (Layer(), *layers), fresh, self)


@dataclass(frozen=True)
class Scope:
    """A relation, the names in sight (its own first, then those of the queries around), and what it is evaluated for.

    `carried` are the columns of `given`, as they are called here; every operator keeps them.
    """

    node: Node
    layers: tuple[Layer, ...] = (Layer(),)
    carried: tuple[str, ...] = ()
    given: Given | None = None

    @property
    def own(self) -> Layer:
        return self.layers[0]

    def note(self, name: str) -> None:
        """A column was spoken of: if it comes from around, remember that."""
        if self.given is not None and name in self.carried:
            self.given.used.add(self.given.columns[self.carried.index(name)])

    def with_node(self, node: Node) -> Scope:
        return replace(self, node=node)

    def with_own(self, own: Layer) -> Scope:
        return replace(self, layers=(own, *self.layers[1:]))

    def seen(self) -> tuple[str, ...]:
        """Every column that can be named here, in the relation's order."""
        there = {v.column for layer in self.layers for v in (*layer.shown, *layer.hidden)}
        return tuple(name for name in self.node.names if name in there)

    def asking(self, names: Sequence[str]) -> Given:
        """The distinct values of some columns, for a subquery that speaks of them."""
        for name in names:
            self.note(name)
        kept = {name: name for name in names}
        layers = tuple(layer.renamed(kept) for layer in self.layers)
        return Given(Aggregate(self.node, tuple(names)), tuple(names), layers)
