"""Random Spark SQL queries as text, always the same from the same seed, nested to depth 4.

Every query is a function of its tables, as a bag: where ties would matter, windows and limits are ordered by all
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from .expressions import KIND_OF, KINDS, ORDERED, Column, Expressions
from .tables import TABLES

DEPTH = 4
MOST_TABLES = 7

_ONE_SIDED = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
_JOINS = {
    "JOIN": 6,
    "LEFT JOIN": 4,
    "RIGHT JOIN": 1,
    "FULL JOIN": 1,
    "FULL OUTER JOIN": 1,
    "CROSS JOIN": 1,
    **dict.fromkeys(_ONE_SIDED, 1),
}
_SET_OPERATIONS = ("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "MINUS")


_WIDER = {"int": "dec"}
"""Kinds that a set operation casts to another one."""


@dataclass(frozen=True)
class Select:
    """A query and its output columns."""

    text: str
    columns: tuple[Column, ...]

    @property
    def kinds(self) -> list[str]:
        return [c.kind for c in self.columns]


@dataclass(frozen=True)
class Source:
    """What stands in FROM, and the columns that can be read from it."""

    text: str
    columns: tuple[Column, ...]


Form = Callable[[int, Sequence[str] | None], Select]


def query(seed: int | str, depth: int = DEPTH) -> str:
    """The text of a query."""
    return _Queries(Random(f"query {seed}")).whole(depth).text


class _Queries(Expressions):
    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self._numbers = count(1)
        self._tables_left = random.choice([2, 3, 4, MOST_TABLES])
        self._common: list[tuple[str, Select]] = []

    def name(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"

    def whole(self, depth: int) -> Select:
        """A query, perhaps with common table expressions before it."""
        if not self.chance(0.15):
            return self.select(depth, None)
        texts = []
        for _ in range(self.random.randint(1, 2)):
            made, alias = self.select(depth - 1, None), self.name("cte")
            texts.append(f"{alias} AS ({made.text})")
            self._common.append((alias, made))
        made = self.select(depth - 1, None)
        return Select(f"WITH {', '.join(texts)} {made.text}", made.columns)

    def kinds(self, columns: Sequence[Column] = ()) -> list[str]:
        """Kinds for a few output columns: mostly such as there are."""
        there = [c.kind for c in columns]
        drawn = self.random.choices(KINDS, (6, 4, 2, 1, 1, 1), k=self.random.randint(1, 4))
        return [self.choice(there) if there and self.chance(0.75) else kind for kind in drawn]

    def select(self, depth: int, kinds: Sequence[str] | None) -> Select:
        """A query whose output columns are of these kinds, if any are asked for."""
        if depth <= 1 or self._tables_left <= 0:
            return self.choice([self.plain, self.plain, self.grouped])(1, kinds)
        forms: dict[Form, int] = {
            self.plain: 9,
            self.grouped: 7,
            self.set_operation: 4,
            self.windowed: 3,
            self.limited: 2,
            self.first_of_each: 2,
            self.grouping_sets: 2,
            self.ranked_groups: 1,
        }
        return self.random.choices(list(forms), list(forms.values()))[0](depth, kinds)

    def outputs(self, kinds: Sequence[str], make: Callable[[str], str]) -> tuple[str, tuple[Column, ...]]:
        """The text of a select list, and its columns under new names."""
        columns = tuple(Column(self.name("c"), kind) for kind in kinds)
        return ", ".join(f"{make(c.kind)} AS {c.text}" for c in columns), columns

    # forms of queries -------------------------------------------------------------------------------------------------

    def plain(self, depth: int, kinds: Sequence[str] | None) -> Select:
        source = self.source(depth)
        kinds = kinds or self.kinds(source.columns)

        def item(kind: str) -> str:
            if depth > 1 and self.chance(0.06):
                return self.subquery_value(kind, source.columns, depth - 1)
            return self.scalar(kind, source.columns)

        items, columns = self.outputs(kinds, item)
        distinct = "DISTINCT " if self.chance(0.15) else ""
        return Select(f"SELECT {distinct}{items} FROM {source.text}{self.where(source.columns, depth)}", columns)

    def where(self, columns: Sequence[Column], depth: int) -> str:
        if self.chance(0.65):
            return ""
        return f" WHERE {self.predicate(columns, depth)}"

    def predicate(self, columns: Sequence[Column], depth: int) -> str:
        """A condition, perhaps with subqueries in it, perhaps not as a conjunct."""
        if depth <= 1 or self.chance(0.55):
            return self.condition(columns)
        asked = self.subquery_condition(columns, depth - 1)
        shape = self.random.random()
        if shape < 0.6:
            return asked
        if shape < 0.85:
            return f"{asked} AND {self.condition(columns, 1)}"
        return f"({asked} OR {self.condition(columns, 1)})"

    def keys(self, source: Source) -> list[Column]:
        """What to group by: columns, sometimes expressions."""
        chosen = self.random.sample(source.columns, min(len(source.columns), self.choice([1, 1, 2])))
        return [Column(self.scalar(c.kind, source.columns, 1), c.kind) if self.chance(0.2) else c for c in chosen]

    def grouped(self, depth: int, kinds: Sequence[str] | None) -> Select:
        source = self.source(depth)
        kinds = kinds or self.kinds(source.columns)
        keys = self.keys(source) if self.chance(0.85) else []
        keys = [key for key in keys if any(c.text in key.text for c in source.columns)]
        items, columns = self.outputs(kinds, lambda kind: self.grouped_item(kind, keys, source.columns))
        by = f" GROUP BY {', '.join(k.text for k in keys)}" if keys else ""
        having = f" HAVING {self.having(source.columns)}" if self.chance(0.25) else ""
        return Select(f"SELECT {items} FROM {source.text}{self.where(source.columns, depth)}{by}{having}", columns)

    def grouped_item(self, kind: str, keys: Sequence[Column], columns: Sequence[Column]) -> str:
        found = [k.text for k in keys if k.kind == kind]
        if found and self.chance(0.6):
            return self.choice(
                [found[0], found[0], f"any_value({found[0]})", f"coalesce({found[0]}, {self.literal(kind)})"]
            )
        return self.aggregate(kind, columns)

    def having(self, columns: Sequence[Column]) -> str:
        kind = self.choice(["int", "int", "dec", "str"])
        return f"{self.call(kind, columns)} {self.choice(['>', '<=', '<>', '='])} {self.literal(kind)}"

    def grouping_sets(self, depth: int, kinds: Sequence[str] | None) -> Select:
        """Over no rows engines differ in whether there is a grand total, so that it is asked for some."""
        source = self.source(depth)
        kinds = kinds or self.kinds(source.columns)
        keys = self.random.sample(source.columns, min(2, len(source.columns)))
        names = [k.text for k in keys]
        sets = self.choice(["ROLLUP ({0})", "CUBE ({0})", "GROUPING SETS (({0}), ({1}), ())"])
        by = sets.format(", ".join(names), names[0])

        def item(kind: str) -> str:
            if kind == "int" and self.chance(0.4):
                return f"CAST(grouping({self.choice(names)}) AS BIGINT)"
            found = [k.text for k in keys if k.kind == kind]
            return self.choice(found) if found and self.chance(0.7) else self.aggregate(kind, source.columns)

        items, columns = self.outputs(kinds, item)
        where = self.where(source.columns, depth)
        return Select(f"SELECT {items} FROM {source.text}{where} GROUP BY {by} HAVING count(*) > 0", columns)

    def set_operation(self, depth: int, kinds: Sequence[str] | None) -> Select:
        left = self.select(depth - 1, kinds)
        kinds = left.kinds
        right = self.select(depth - 1, [_WIDER.get(k, k) if self.chance(0.15) else k for k in kinds])
        kind = self.choice(_SET_OPERATIONS)
        text = f"({left.text}) {kind} ({right.text})"
        if self._tables_left > 0 and self.chance(0.15):
            text = f"{text} {self.choice(['UNION ALL', 'INTERSECT', 'EXCEPT ALL'])} ({self.plain(1, kinds).text})"
        columns = tuple(Column(c.text, r.kind) for c, r in zip(left.columns, right.columns, strict=True))
        return Select(text, columns)

    def limited(self, depth: int, kinds: Sequence[str] | None) -> Select:
        made = self.choice([self.plain, self.grouped])(depth, kinds)
        order = ", ".join(f"{c.text}{self.choice(['', ' DESC', ' NULLS LAST'])}" for c in made.columns)
        offset = f" OFFSET {self.random.randint(1, 2)}" if self.chance(0.15) else ""
        return Select(f"{made.text} ORDER BY {order} LIMIT {self.random.randint(1, 4)}{offset}", made.columns)

    def first_of_each(self, depth: int, kinds: Sequence[str] | None) -> Select:
        source = self.derived(self.plain(depth, [*self.kinds(), *(kinds or ())]))
        parts = self.random.sample(source.columns, 1 if len(source.columns) == 1 else self.choice([1, 1, 2]))
        number, alias = self.name("rn"), self.name("d")
        partition = ", ".join(c.text for c in parts)
        over = f"row_number() OVER (PARTITION BY {partition} ORDER BY {self.total_order(source.columns)})"
        inner = tuple(Column(f"{alias}.{_bare(c)}", c.kind) for c in source.columns)
        items, columns = self.outputs(kinds or self.kinds(inner), lambda kind: self.scalar(kind, inner, 1))
        numbered = f"SELECT *, {over} AS {number} FROM {source.text}"
        bar = self.choice(["= 1", "= 1", "<= 2"])
        return Select(f"SELECT {items} FROM ({numbered}) {alias} WHERE {alias}.{number} {bar}", columns)

    # windows ----------------------------------------------------------------------------------------------------------

    def total_order(self, columns: Sequence[Column]) -> str:
        shuffled = self.random.sample(columns, len(columns))
        return ", ".join(f"{c.text}{self.choice(['', '', ' DESC'])}" for c in shuffled)

    def windowed(self, depth: int, kinds: Sequence[str] | None) -> Select:
        source = self.source(depth)
        kinds = kinds or self.kinds(source.columns)
        items, columns = self.outputs(
            kinds,
            lambda kind: self.over(kind, source.columns) if self.chance(0.5) else self.scalar(kind, source.columns, 1),
        )
        return Select(f"SELECT {items} FROM {source.text}{self.where(source.columns, 1)}", columns)

    def over(self, kind: str, columns: Sequence[Column]) -> str:
        """A window function; where ties would matter, ordered by all columns."""
        parts = self.random.sample(columns, min(len(columns), self.choice([1, 1, 1, 2])))
        partition = f"PARTITION BY {', '.join(c.text for c in parts)}" if self.chance(0.9) else ""
        total, some = self.total_order(columns), self.total_order(columns[:1])
        one = self.operand(kind, columns)
        options = [
            f"lag({one}) OVER ({partition} ORDER BY {total})",
            f"lead({one}, 1, {self.choice(['NULL', one])}) OVER ({partition} ORDER BY {total})",
            f"first_value({one}) OVER ({partition} ORDER BY {total})",
            f"max({one}) OVER ({partition} ORDER BY {total} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            f"min({one}) OVER ({partition})",
            f"max({one}) OVER ({partition} ORDER BY {some})",
        ]
        options += {
            "int": [
                f"row_number() OVER ({partition} ORDER BY {total})",
                f"rank() OVER ({partition} ORDER BY {some})",
                f"dense_rank() OVER ({partition} ORDER BY {some})",
                f"ntile(2) OVER ({partition} ORDER BY {total})",
                f"sum({one}) OVER ({partition} ORDER BY {some})",
                f"sum({one}) OVER ({partition} ORDER BY {total} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
                f"count(*) OVER ({partition})",
            ],
            "str": [f"array_join(collect_list({one}) OVER ({partition} ORDER BY {total}), ',')"],
            "dec": [f"sum({one}) OVER ({partition})"],
            "dbl": [
                f"avg({self.operand('int', columns)}) OVER ({partition})",
                f"percent_rank() OVER ({partition} ORDER BY {some})",
                f"cume_dist() OVER ({partition} ORDER BY {some})",
            ],
        }.get(kind, [])
        return self.choice(options)

    def ranked_groups(self, depth: int, kinds: Sequence[str] | None) -> Select:
        """Windows over aggregates."""
        source = self.source(depth)
        kinds = kinds or self.kinds(source.columns)
        key, other = self.choice(source.columns), self.call("int", source.columns)
        over = f"OVER (ORDER BY {other} DESC, {key.text})"

        def item(kind: str) -> str:
            if kind == "int":
                return self.choice([f"rank() {over}", f"sum({other}) {over}", f"{other} - lag({other}) {over}", other])
            return key.text if key.kind == kind else self.aggregate(kind, source.columns)

        items, columns = self.outputs(kinds, item)
        return Select(f"SELECT {items} FROM {source.text}{self.where(source.columns, 1)} GROUP BY {key.text}", columns)

    # subqueries -------------------------------------------------------------------------------------------------------

    def inner(self, columns: Sequence[Column], depth: int) -> tuple[Source, str]:
        """A relation inside a subquery, and its WHERE: mostly tied to the columns outside."""
        source = self.source(depth)
        conditions = [self.meeting(source.columns, columns)] if self.chance(0.75) else []
        if self.chance(0.35):
            conditions.append(self.condition(source.columns, 1))
        return source, f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def subquery_condition(self, columns: Sequence[Column], depth: int) -> str:
        source, where = self.inner(columns, depth)
        shape = self.random.random()
        if shape < 0.45:
            return f"{self.choice(['EXISTS', 'NOT EXISTS'])} (SELECT 1 FROM {source.text}{where})"
        common = [(a, b) for a in columns for b in source.columns if a.kind == b.kind and a.kind in ORDERED]
        if shape < 0.8 and common:
            one, other = self.choice(common)
            return f"{one.text} {self.choice(['IN', 'NOT IN'])} (SELECT {other.text} FROM {source.text}{where})"
        kind = self.choice(["int", "int", "str", "dec"])
        value = f"(SELECT {self.call(kind, source.columns)} FROM {source.text}{where})"
        return f"{self.operand(kind, columns)} {self.choice(['=', '<', '>=', '<>'])} {value}"

    def subquery_value(self, kind: str, columns: Sequence[Column], depth: int) -> str:
        if kind == "bool":
            return f"({self.subquery_condition(columns, depth)})"
        source, where = self.inner(columns, depth)
        return f"(SELECT {self.aggregate(kind, source.columns)} FROM {source.text}{where})"

    # FROM -------------------------------------------------------------------------------------------------------------

    def source(self, depth: int) -> Source:
        """One relation or a join of some."""
        made = self.relation(depth)
        while self._tables_left > 0 and self.chance(0.38):
            made = self.joined(made, self.relation(depth - 1))
        if self.chance(0.04):
            return self.exploded(made)
        return made

    def relation(self, depth: int) -> Source:
        if self._common and self.chance(0.5):
            alias, made = self.choice(self._common)
            return self.aliased(alias, made.columns)
        if depth > 1 and self._tables_left > 1 and self.chance(0.55):
            return self.derived(self.select(depth - 1, None))
        if self.chance(0.03):
            return self.values()
        self._tables_left -= 1
        table = self.choice(sorted(TABLES))
        return self.aliased(table, tuple(Column(c.name, KIND_OF[c.type]) for c in TABLES[table].columns))

    def aliased(self, table: str, columns: Sequence[Column]) -> Source:
        alias = self.name("t")
        return Source(f"{table} {alias}", tuple(Column(f"{alias}.{c.text}", c.kind) for c in columns))

    def derived(self, made: Select) -> Source:
        """A query in FROM, its columns sometimes named anew."""
        alias = self.name("d")
        names, listed = [c.text for c in made.columns], ""
        if self.chance(0.1):
            names = [f"{alias}_{i}" for i in range(len(names))]
            listed = f" AS {alias}({', '.join(names)})"
        columns = tuple(Column(f"{alias}.{n}", c.kind) for n, c in zip(names, made.columns, strict=True))
        return Source(f"({made.text}){listed or f' {alias}'}", columns)

    def values(self) -> Source:
        alias, kinds = self.name("v"), ["int", "str"]
        rows = ", ".join(
            f"({', '.join(self.literal(kind) for kind in kinds)})" for _ in range(self.random.randint(1, 3))
        )
        return Source(f"(VALUES {rows}) AS {alias}(a, b)", (Column(f"{alias}.a", "int"), Column(f"{alias}.b", "str")))

    def exploded(self, source: Source) -> Source:
        alias, kind = self.name("e"), self.choice(["int", "str"])
        array = f"array({self.operand(kind, source.columns)}, {self.operand(kind, source.columns)})"
        return Source(
            f"{source.text} LATERAL VIEW explode({array}) {alias} AS {alias}_x",
            (*source.columns, Column(f"{alias}.{alias}_x", kind)),
        )

    def joined(self, left: Source, right: Source) -> Source:
        kind = self.random.choices(list(_JOINS), list(_JOINS.values()))[0]
        both = (*left.columns, *right.columns)
        if kind == "CROSS JOIN":
            return Source(f"{left.text} {kind} {right.text}", both)
        shared = _only_once(left.columns) & _only_once(right.columns)
        if shared and kind not in _ONE_SIDED and self.chance(0.3):
            return self.using(left, right, kind, self.choice(sorted(shared)))
        on = self.meeting(left.columns, right.columns)
        if self.chance(0.25):
            on = f"{on} AND {self.choice([self.condition(both, 1), self.condition(right.columns, 0)])}"
        return Source(f"{left.text} {kind} {right.text} ON {on}", left.columns if kind in _ONE_SIDED else both)

    def using(self, left: Source, right: Source, kind: str, name: str) -> Source:
        """The common column is one; in a query of its own, so that its bare name is that column's alone."""
        columns = [Column(name, next(c.kind for c in left.columns if _bare(c) == name))]
        columns += [c for c in (*left.columns, *right.columns) if _bare(c) != name]
        outputs = tuple(Column(self.name("c"), c.kind) for c in columns)
        items = ", ".join(f"{c.text} AS {o.text}" for c, o in zip(columns, outputs, strict=True))
        return self.derived(Select(f"SELECT {items} FROM {left.text} {kind} {right.text} USING ({name})", outputs))


def _bare(column: Column) -> str:
    return column.text.rsplit(".", 1)[-1]


def _only_once(columns: Sequence[Column]) -> set[str]:
    """Names that tell one column from the others."""
    names = [_bare(c) for c in columns]
    return {name for name in names if names.count(name) == 1}
