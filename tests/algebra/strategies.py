"""Random well-formed relational expressions over three small tables, and rows for these tables.

`nodes()` gives trees of every kind of node that a query can have, `data()` the rows of the tables. Every expression is
deterministic as a bag: top-k and row numbers are ordered by all columns, and there are no floats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import Any, TypeVar

from hypothesis import strategies as st
from sqlglot import exp

from matview.algebra.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    Outer,
    Project,
    Repeat,
    Scan,
    Semi,
    SetOp,
    TopK,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from matview.algebra.scalars import column, number
from matview.algebra.schema import Field

T = TypeVar("T")
Row = tuple[Any, ...]
Data = dict[str, list[Row]]
"""The rows of each table."""

NUMBERS = ("int", "bigint")
TEXT = "string"


@dataclass(frozen=True)
class Table:
    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()

    def scan(self, alias: str) -> Scan:
        """All columns, called `alias.column`."""
        named = tuple(Field(f"{alias}.{f.name}", f.type, f.nullable) for f in self.fields)
        columns = tuple(f.name for f in self.fields)
        return Scan(self.name, columns, named, tuple(f"{alias}.{name}" for name in self.key))


TABLES = {
    table.name: table
    for table in (
        Table("t", (Field("id", "int", False), Field("a", "int"), Field("b", "string")), ("id",)),
        Table("u", (Field("id", "int", False), Field("t_id", "int"), Field("x", "int")), ("id",)),
        Table("w", (Field("a", "int"), Field("b", "string"))),
    )
}


# rows -----------------------------------------------------------------------------------------------------------------

_VALUES: dict[str, list[Any]] = {"int": [1, 2, 0, 3, None], "string": ["x", "y", "", None]}
_KEYS = range(6)


def rows(table: Table, most: int = 5) -> st.SearchStrategy[list[Row]]:
    """Rows of a table: few different values, nulls among them; keys are kept, bags have duplicates."""
    every = list(product(*(_KEYS if f.name in table.key else _VALUES[f.type] for f in table.fields)))
    positions = [i for i, f in enumerate(table.fields) if f.name in table.key]
    unique = (lambda row: tuple(row[i] for i in positions)) if positions else None
    row = st.sampled_from(every)
    some, few = (st.lists(row, min_size=n, max_size=most, unique_by=unique) for n in (min(3, most), 0))
    return st.one_of(some, some, some, some, few)


def data(most: int = 5) -> st.SearchStrategy[Data]:
    """Rows of all tables, at most so many in each."""
    return st.fixed_dictionaries({table.name: rows(table, most) for table in TABLES.values()})


# scalar expressions ---------------------------------------------------------------------------------------------------


def is_number(field: Field) -> bool:
    return field.type in NUMBERS


def is_text(field: Field) -> bool:
    return field.type == TEXT


def null(kind: str) -> exp.Expr:
    return exp.cast(exp.null(), kind, dialect="spark")


def grouped(expression: exp.Expr) -> exp.Expr:
    """In parentheses, where it may stand inside another."""
    return expression if isinstance(expression, exp.Column | exp.Literal) else exp.paren(expression)


class Growth:
    """One tree while it grows: bytes decide each step, and zeros (also when they run out) the simplest.

    Columns have names of their own all over the tree.
    """

    def __init__(self, decisions: bytes, without: Collection[str] = ()) -> None:
        self._decisions = iter(decisions)
        self._without = set(without)
        self._numbers = count(1)

    def choice(self, options: Sequence[T]) -> T:
        return options[next(self._decisions, 0) % len(options)]

    def whole(self, least: int, most: int) -> int:
        return self.choice(range(least, most + 1))

    def names(self) -> Iterator[str]:
        """Names for new columns."""
        prefix = f"n{next(self._numbers)}"
        return (f"{prefix}.{i}" for i in count(1))

    def some(self, options: Sequence[T], least: int = 1) -> list[T]:
        """Some of them, in their order."""
        mask = self.whole(0, 255)
        chosen = [o for i, o in enumerate(options) if mask >> i % 8 & 1]
        return chosen if len(chosen) >= least else list(options[:least])

    # scalars ----------------------------------------------------------------------------------------------------------

    def literal(self, kind: str) -> exp.Expr:
        if kind == TEXT:
            return exp.Literal.string(self.choice(["x", "y", ""]))
        return number(self.choice([1, 2, 0, 3]))

    def operand(self, fields: Sequence[Field], kind: str) -> exp.Expr:
        """A column of the kind where there is one, else a literal."""
        of_kind = [f for f in fields if is_text(f) == (kind == TEXT) and f.type]
        if not of_kind or self.whole(0, 5) == 5:
            return self.literal(kind)
        return column(self.choice(of_kind).name)

    def scalar(self, fields: Sequence[Field], kind: str) -> exp.Expr:
        shape, one = self.whole(0, 7), self.operand(fields, kind)
        if shape == 4:
            return exp.Coalesce(this=one, expressions=[self.operand(fields, kind)])
        if shape == 5:
            return exp.Case(
                ifs=[exp.If(this=self.condition(fields), true=one)], default=self.choice([self.literal(kind), None])
            )
        if shape == 6:
            return exp.Upper(this=one) if kind == TEXT else exp.Neg(this=grouped(one))
        if shape == 7:
            made = exp.DPipe if kind == TEXT else self.choice([exp.Add, exp.Sub])
            return made(this=grouped(one), expression=grouped(self.operand(fields, kind)))
        return one

    def comparison(self, left: Sequence[Field], right: Sequence[Field]) -> exp.Expr:
        kinds = ["int"] if any(map(is_number, left)) else []
        kind = self.choice([*kinds, TEXT] if any(map(is_text, left)) or not kinds else kinds)
        made = self.choice([exp.GTE, exp.EQ, exp.NEQ, exp.LTE, exp.GTE, exp.LT, exp.NullSafeEQ])
        one, other = self.operand(left, kind), self.operand(right, kind)
        return made(this=one, expression=other if other != one else self.literal(kind))

    def condition(self, fields: Sequence[Field], depth: int = 2) -> exp.Expr:
        shape = self.whole(0, 9)
        if depth and shape == 5:
            return exp.and_(self.condition(fields, depth - 1), self.condition(fields, depth - 1))
        if depth and shape in (6, 7):
            return exp.or_(self.condition(fields, depth - 1), self.condition(fields, depth - 1))
        if shape == 8:
            return self.rare_condition(fields)
        if shape == 9:
            found = exp.Is(this=column(self.choice(fields).name), expression=exp.null())
            return self.choice([found, exp.not_(found)])
        return self.comparison(fields, fields)

    def rare_condition(self, fields: Sequence[Field]) -> exp.Expr:
        return self.choice([exp.true(), exp.not_(exp.paren(self.comparison(fields, fields))), exp.false()])

    def joining(self, left: Sequence[Field], right: Sequence[Field]) -> exp.Expr:
        """A condition between two relations, mostly an equality."""
        of_kind = [(f, g) for f in left for g in right if is_text(f) == is_text(g) and f.type and g.type]
        if not of_kind or self.whole(0, 9) == 9:
            return self.condition([*left, *right])
        one, other = self.choice(of_kind)
        made = self.choice([exp.EQ, exp.EQ, exp.EQ, exp.NullSafeEQ, exp.LT])
        met = made(this=column(one.name), expression=column(other.name))
        return exp.and_(met, self.condition([*left, *right], 1)) if self.whole(0, 3) == 3 else met

    # relations --------------------------------------------------------------------------------------------------------

    def node(self, depth: int, leaves: int) -> Node:
        """A relation of at most so many levels and so many leaves, with at least one column."""
        if depth == 0 or self.whole(0, 9) == 0:
            return self.leaf()
        kinds = {**_UNARY, **(_MANY if leaves > 1 else {})}
        kind = self.choice([name for name in kinds for _ in range(_OFTEN.get(name, 1)) if name not in self._without])
        return kinds[kind](self, depth - 1, leaves)

    def leaf(self) -> Node:
        if "Values" not in self._without and self.whole(0, 9) == 9:
            return self.values()
        table = TABLES[self.choice(sorted(TABLES))]
        return table.scan(f"{table.name}_{next(self._numbers)}")

    def values(self) -> Node:
        kinds = [self.choice(["int", TEXT]) for _ in range(self.whole(1, 2))]
        fields = tuple(Field(name, kind) for name, kind in zip(self.names(), kinds, strict=False))
        made = [
            tuple(self.choice([self.literal(kind), null(kind)]) for kind in kinds)
            for _ in range(self.choice([2, 3, 1, 2, 0]))
        ]
        return Values(fields, tuple(made))

    def parts(self, depth: int, leaves: int, least: int = 2, most: int = 3) -> list[Node]:
        """Relations that share the leaves."""
        width = self.whole(least, max(least, min(most, leaves)))
        shares = [1] * width
        for _ in range(leaves - width):
            shares[self.whole(0, width - 1)] += 1
        return [self.node(depth, share) for share in shares]

    def filter(self, depth: int, leaves: int) -> Node:
        under = self.node(depth, leaves)
        return Filter(under, self.condition(under.fields))

    def project(self, depth: int, leaves: int) -> Node:
        under = self.node(depth, leaves)
        if self.whole(0, 3) == 3:
            return self.projected(under, [f for f in under.fields if f.type] or under.fields)
        kinds = [self.choice(["int", TEXT]) for _ in range(self.whole(1, 3))]
        return Project(
            under,
            tuple((name, self.scalar(under.fields, kind)) for name, kind in zip(self.names(), kinds, strict=False)),
        )

    def projected(self, under: Node, fields: Sequence[Field]) -> Node:
        """Only names change, and columns go."""
        chosen = self.some(fields)
        return Project(under, tuple((n, column(f.name)) for n, f in zip(self.names(), chosen, strict=False)))

    def aggregate(self, depth: int, leaves: int) -> Node:
        under = self.node(depth, leaves)
        keys = tuple(f.name for f in self.some(under.fields, 0)[:3])
        calls = [self.call(under.fields) for _ in range(self.whole(0 if keys else 1, 2))]
        return Aggregate(under, keys, tuple(zip(self.names(), calls, strict=False)))

    def call(self, fields: Sequence[Field]) -> exp.Expr:
        """An aggregate call."""
        shape = self.whole(0, 6)
        if shape == 0:
            return exp.Count(this=exp.Star())
        if shape == 1:
            return exp.Count(this=exp.Distinct(expressions=[column(self.choice(fields).name)]))
        if shape == 2:
            counted = exp.Count(this=column(self.choice(fields).name))
            return exp.Filter(this=counted, expression=exp.Where(this=self.condition(fields, 1)))
        if shape in (3, 4):
            return exp.Sum(this=self.scalar(fields, "int"))
        return self.choice([exp.Min, exp.Max])(this=self.scalar(fields, self.choice(["int", TEXT])))

    def window(self, depth: int, leaves: int) -> Node:
        under = self.node(depth, leaves)
        partition = tuple(f.name for f in self.some(under.fields, 0)[:2])
        calls = [self.over(under.fields, partition) for _ in range(self.whole(1, 2))]
        return Window(under, partition, tuple(zip(self.names(), calls, strict=False)))

    def over(self, fields: Sequence[Field], partition: Sequence[str]) -> exp.Expr:
        """A window function; where ties would matter, all columns are in the order."""
        shape = self.whole(0, 3)
        order = self.order([self.choice(fields)] if shape == 1 else fields)
        this: exp.Expr = (
            exp.RowNumber(),
            exp.Anonymous(this="RANK"),
            exp.Count(this=exp.Star()),
            exp.Sum(this=self.operand(fields, "int")),
        )[shape]
        ordered = exp.Order(expressions=list(order)) if shape < 2 else None
        return exp.Window(this=this, partition_by=[column(name) for name in partition], order=ordered)

    def order(self, fields: Sequence[Field]) -> tuple[exp.Expr, ...]:
        """By these columns, in this order, nulls where Spark has them."""
        mask = self.whole(0, 255)
        down = [bool(mask >> i % 8 & 1) for i, _ in enumerate(fields)]
        return tuple(
            exp.Ordered(this=column(f.name), desc=d, nulls_first=not d) for f, d in zip(fields, down, strict=True)
        )

    def topk(self, depth: int, leaves: int) -> Node:
        under = self.node(depth, leaves)
        return TopK(under, self.order(under.fields), self.choice([3, 4, 2, 1, 0]), self.choice([0, 0, 1]))

    def repeat(self, depth: int, leaves: int) -> Node:
        under = self.node(depth, leaves)
        (times, *_) = next(zip(self.names(), strict=False))
        counted = Aggregate(under, under.names[:3], ((times, exp.Count(this=exp.Star())),))
        return Repeat(counted, times)

    def unnest(self, depth: int, leaves: int) -> Node:
        under, names = self.node(depth, leaves), self.names()
        elements = [self.operand(under.fields, "int") for _ in range(self.whole(1, 2))]
        array: exp.Expr = exp.Array(expressions=elements)
        if self.whole(0, 1):
            array = exp.Case(ifs=[exp.If(this=self.condition(under.fields, 1), true=array)])
        if self.whole(0, 2) == 2:
            made = (Field(next(names), "int"), Field(next(names), "int"))
            return Unnest(under, exp.Posexplode(this=array), made, bool(self.whole(0, 1)))
        return Unnest(under, exp.Explode(this=array), (Field(next(names), "int"),), bool(self.whole(0, 1)))

    def join(self, depth: int, leaves: int) -> Node:
        parts = self.parts(depth, leaves)
        on = [self.joining(one.fields, parts[self.whole(0, i)].fields) for i, one in enumerate(parts[1:])]
        if self.whole(0, 9) == 9:
            on = []
        if "Values" not in self._without and self.whole(0, 9) == 9:
            parts.insert(self.whole(0, len(parts)), Values((), ((),)))
        return Join(tuple(parts), tuple(on))

    def outer(self, depth: int, leaves: int) -> Node:
        left, right = self.parts(depth, leaves, most=2)
        return Outer(self.choice(["left", "full"]), left, right, self.joining(left.fields, right.fields))

    def semi(self, depth: int, leaves: int) -> Node:
        left, right = self.parts(depth, leaves, most=2)
        return Semi(self.choice(["semi", "anti"]), left, right, self.joining(left.fields, right.fields))

    def union(self, depth: int, leaves: int) -> Node:
        return UnionAll(tuple(self.alike(self.parts(depth, leaves))))

    def setop(self, depth: int, leaves: int) -> Node:
        left, right = self.alike(self.parts(depth, leaves, most=2))
        return SetOp(self.choice(["except", "except all", "intersect", "intersect all"]), left, right)

    def alike(self, parts: list[Node]) -> list[Node]:
        """The same relations with columns of the same kinds."""
        kinds = [self.choice(["int", TEXT]) for _ in range(self.whole(1, 3))]
        return [self.of_kinds(part, kinds) for part in parts]

    def of_kinds(self, part: Node, kinds: list[str]) -> Node:
        if [is_text(f) for f in part.fields] == [kind == TEXT for kind in kinds] and all(f.type for f in part.fields):
            return part
        outputs = zip(self.names(), (self.operand(part.fields, kind) for kind in kinds), strict=False)
        return Project(part, tuple(outputs))


_UNARY: dict[str, Callable[[Growth, int, int], Node]] = {
    "Filter": Growth.filter,
    "Project": Growth.project,
    "Aggregate": Growth.aggregate,
    "Window": Growth.window,
    "TopK": Growth.topk,
    "Repeat": Growth.repeat,
    "Unnest": Growth.unnest,
}
_MANY: dict[str, Callable[[Growth, int, int], Node]] = {
    "Join": Growth.join,
    "Outer": Growth.outer,
    "Semi": Growth.semi,
    "UnionAll": Growth.union,
    "SetOp": Growth.setop,
}


_OFTEN = {"Filter": 3, "Project": 2, "Aggregate": 2, "Join": 4, "Outer": 2, "Semi": 2}
"""How often a kind comes, beside the others' once."""

DECISIONS = 160
"""More than nearly all trees need."""


def nodes(depth: int = 4, leaves: int = 4, without: Collection[str] = ()) -> st.SearchStrategy[Node]:
    """Trees of at most `depth` operators over a leaf and at most `leaves` leaves; `without` names kinds of nodes."""
    decisions = st.binary(min_size=DECISIONS, max_size=DECISIONS)
    return decisions.map(lambda drawn: Growth(drawn, without).node(depth, leaves))
