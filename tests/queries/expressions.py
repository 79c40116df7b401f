"""Random scalar expressions and aggregate calls as Spark SQL text; all deterministic, none that can fail.

A kind is a class of types that compare with one another. Sums are over exact kinds only; a float is never summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")

TYPES = {"int": "BIGINT", "str": "STRING", "dec": "DECIMAL(8,2)", "bool": "BOOLEAN", "date": "DATE", "dbl": "DOUBLE"}
KINDS = tuple(TYPES)
KIND_OF = {"bigint": "int", "int": "int", "string": "str", "decimal(8,2)": "dec", "boolean": "bool", "date": "date"}
ORDERED = ("int", "str", "dec", "date")

_LITERALS = {
    "int": ["0", "1", "2", "3", "-1"],
    "str": ["'Oslo'", "'nut'", "''", "'o'"],
    "dec": ["CAST(1.50 AS DECIMAL(8,2))", "CAST(0 AS DECIMAL(8,2))"],
    "bool": ["TRUE", "FALSE"],
    "date": ["DATE '2024-02-01'", "DATE '2025-01-01'"],
    "dbl": ["CAST(0.5 AS DOUBLE)"],
}
_UNARY = {
    "int": ["abs({0})", "(- {0})", "({0} % 3)", "nullif({0}, 2)", "({0} * 2)"],
    "str": [
        "upper({0})",
        "lower({0})",
        "substring({0}, 1, 2)",
        "trim({0})",
        "nullif({0}, 'nut')",
        "replace({0}, 'o', 'u')",
    ],
    "dec": ["abs({0})", "(- {0})", "nullif({0}, 2)"],
    "bool": ["(NOT {0})"],
    "date": ["nullif({0}, DATE '2024-02-01')"],
    "dbl": ["abs({0})"],
}
_BINARY = {
    "int": ["({0} + {1})", "({0} - {1})", "coalesce({0}, {1})", "greatest({0}, {1})", "least({0}, {1})"],
    "str": ["concat({0}, {1})", "({0} || {1})", "coalesce({0}, {1})"],
    "dec": ["({0} + {1})", "({0} - {1})", "coalesce({0}, {1})"],
    "bool": ["coalesce({0}, {1})"],
    "date": ["coalesce({0}, {1})", "greatest({0}, {1})"],
    "dbl": ["coalesce({0}, {1})"],
}
_CONVERTED = {
    "int": [("length({0})", "str"), ("year({0})", "date"), ("month({0})", "date"), ("CAST({0} AS INT)", "bool")],
    "str": [("CAST({0} AS STRING)", "int")],
    "dec": [("CAST({0} AS DECIMAL(18,2))", "int")],
    "bool": [],
    "date": [],
    "dbl": [("({0} / 2)", "int"), ("CAST({0} AS DOUBLE)", "int")],
}
_AGGREGATES = {
    "int": [("count({0})", ""), ("count(DISTINCT {0})", ""), ("sum({0})", "int"), ("sum(DISTINCT {0})", "int"),
            ("min({0})", "int"), ("max({0})", "int"), ("coalesce(size(collect_set({0})), 0)", "str")],
    "str": [("min({0})", "str"), ("max({0})", "str"),
            ("coalesce(array_join(sort_array(collect_set({0})), ','), '')", "str"),
            ("coalesce(array_join(sort_array(collect_list({0})), ','), '')", "str")],
    "dec": [("sum({0})", "dec"), ("min({0})", "dec"), ("max({0})", "dec")],
    "bool": [("bool_and({0})", "bool"), ("bool_or({0})", "bool")],
    "date": [("min({0})", "date"), ("max({0})", "date")],
    "dbl": [("avg({0})", "int"), ("avg({0})", "dec"), ("median({0})", "int"), ("percentile({0}, 0.5)", "int"),
            ("round(stddev({0}), 9)", "int"), ("round(stddev_pop({0}), 9)", "int"), ("round(variance({0}), 9)", "int"),
            ("round(var_pop({0}), 9)", "int")],
}  # fmt: skip
"""For each kind, calls that give it and the kind they take; of an empty kind, anything."""


class Column(NamedTuple):
    """A column where it can be read, or an output column under its name."""

    text: str
    kind: str


class Expressions:
    """Expressions over columns in scope, drawn at random."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def choice(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def literal(self, kind: str) -> str:
        return f"CAST(NULL AS {TYPES[kind]})" if self.chance(0.08) else self.choice(_LITERALS[kind])

    def operand(self, kind: str, columns: Sequence[Column]) -> str:
        """A column of the kind where there is one, else a literal."""
        found = [c.text for c in columns if c.kind == kind]
        return self.choice(found) if found and self.chance(0.9) else self.literal(kind)

    def scalar(self, kind: str, columns: Sequence[Column], depth: int = 2) -> str:
        shape = self.random.random()
        if depth == 0 or shape < 0.55:
            return self.operand(kind, columns)
        if shape < 0.68:
            return self.choice(_UNARY[kind]).format(self.scalar(kind, columns, depth - 1))
        if shape < 0.82:
            one, other = (self.scalar(kind, columns, depth - 1) for _ in range(2))
            return self.choice(_BINARY[kind]).format(one, other)
        if shape < 0.92:
            return self.case(kind, columns, depth - 1)
        return self.converted(kind, columns, depth - 1)

    def case(self, kind: str, columns: Sequence[Column], depth: int) -> str:
        when, one, other = (
            self.condition(columns, depth),
            self.scalar(kind, columns, depth),
            self.operand(kind, columns),
        )
        if self.chance(0.3):
            return f"if({when}, {one}, {other})"
        return f"CASE WHEN {when} THEN {one} {f'ELSE {other} ' if self.chance(0.7) else ''}END"

    def converted(self, kind: str, columns: Sequence[Column], depth: int) -> str:
        if kind == "bool":
            return f"({self.condition(columns, depth)})"
        if not _CONVERTED[kind]:
            return self.operand(kind, columns)
        text, given = self.choice(_CONVERTED[kind])
        return text.format(self.scalar(given, columns, depth))

    # conditions -------------------------------------------------------------------------------------------------------

    def condition(self, columns: Sequence[Column], depth: int = 2) -> str:
        shape = self.random.random()
        if depth and shape < 0.25:
            connective = self.choice(["AND", "AND", "OR"])
            return f"({self.condition(columns, depth - 1)} {connective} {self.condition(columns, depth - 1)})"
        if depth and shape < 0.3:
            return f"NOT ({self.condition(columns, depth - 1)})"
        if shape < 0.42:
            return f"{self.choice(columns).text} IS {self.choice(['NULL', 'NOT NULL'])}"
        if shape < 0.55:
            return self.listed(columns)
        return self.comparison(columns, columns if self.chance(0.3) else (), min(depth, 1))

    def listed(self, columns: Sequence[Column]) -> str:
        kind = self.choice([c.kind for c in columns if c.kind in ORDERED] or ["int"])
        one, negation = self.operand(kind, columns), self.choice(["", "", "NOT "])
        if kind == "str" and self.chance(0.5):
            return f"{one} {negation}LIKE {self.choice(['%o%', 'O%', '_ut', '%'])!r}"
        if self.chance(0.5):
            values = (self.choice(_LITERALS[kind]) for _ in range(self.random.randint(1, 3)))
            return f"{one} {negation}IN ({', '.join(values)})"
        return f"{one} {negation}BETWEEN {self.literal(kind)} AND {self.operand(kind, columns)}"

    def comparison(self, left: Sequence[Column], right: Sequence[Column], depth: int = 1) -> str:
        kind = self.choice([c.kind for c in left if c.kind != "bool"] or ["int"])
        sign = self.choice(["=", "=", "<>", "<", ">=", "<=>"])
        other = self.scalar(kind, right, depth) if right else self.literal(kind)
        return f"{self.scalar(kind, left, depth)} {sign} {other}"

    def meeting(self, left: Sequence[Column], right: Sequence[Column]) -> str:
        """A condition between two relations: mostly that columns are equal."""
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind != "bool"]
        if self.chance(0.05):
            pairs = [(a, b) for a in left for b in right if {a.kind, b.kind} == {"int", "dec"}] or pairs
        if not pairs or self.chance(0.05):
            return self.condition([*left, *right], 1)
        alike = [(a, b) for a, b in pairs if a.text.rsplit(".", 1)[-1] == b.text.rsplit(".", 1)[-1]]
        one, other = self.choice(alike if alike and self.chance(0.6) else pairs)
        sign = self.choice(["=", "=", "=", "=", "=", "=", "<=>", "<", "<>"])
        return f"{one.text} {sign} {other.text}"

    # aggregates -------------------------------------------------------------------------------------------------------

    def aggregate(self, kind: str, columns: Sequence[Column]) -> str:
        """An aggregate call, or an expression over such calls."""
        shape = self.random.random()
        if shape < 0.15:
            return self.choice(_BINARY[kind]).format(self.call(kind, columns), self.literal(kind))
        if shape < 0.2 and kind != "bool":
            return self.choice(_BINARY[kind]).format(self.call(kind, columns), self.call(kind, columns))
        return self.call(kind, columns)

    def call(self, kind: str, columns: Sequence[Column]) -> str:
        if kind == "int" and self.chance(0.35):
            return self.counting(columns)
        text, given = self.choice(_AGGREGATES[kind])
        given = given or self.choice([c.kind for c in columns])
        made = text.format(self.scalar(given, columns, 1))
        if text.endswith("({0})") and self.chance(0.15):
            return f"{made} FILTER (WHERE {self.condition(columns, 1)})"
        return made

    def counting(self, columns: Sequence[Column]) -> str:
        shape = self.random.random()
        if shape < 0.15:
            return f"count_if({self.condition(columns, 1)})"
        if shape < 0.3:
            return f"count(DISTINCT {self.choice(columns).text}, {self.choice(columns).text})"
        if shape < 0.45:
            return f"count(*) FILTER (WHERE {self.condition(columns, 1)})"
        return "count(*)"
