"""The types of values that Arrow has as Spark has them, and how they combine. What is not here is not computed here."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

WIDTHS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_NAMES = frozenset(
    {*WIDTHS, "decimal", "string", "binary", "boolean", "date", "timestamp", "timestamp_ntz", "float", "double"}
)
_SPELLED = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
MOST_DIGITS, LEAST_SCALE = 38, 6


class NotLocal(Exception):
    """The driver does not compute this as Spark does, or not so much of it: Spark shall."""


FOR_SPARK = (NotLocal, RecursionError, pa.ArrowException)
"""What says so: also an expression that is nested more deeply than Python goes, more text than Arrow has room for."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type; decimals have digits, `scale` of them after the point. `null` is that of a bare NULL; what is `unknown`
    can be handed on, and no more."""

    name: str
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.name not in _NAMES and self.name not in ("null", "unknown"):
            raise NotLocal(f"values of type {self.name}")
        if self.precision > MOST_DIGITS or self.scale > self.precision:
            raise NotLocal("digits that Spark would round away")

    @property
    def is_whole(self) -> bool:
        return self.name in WIDTHS

    @property
    def is_exact(self) -> bool:
        """A number whose arithmetic rounds nothing."""
        return self.is_whole or self.name == "decimal"

    @property
    def is_floating(self) -> bool:
        return self.name in ("float", "double")

    @property
    def is_ordered(self) -> bool:
        """Arrow orders its values as Spark does."""
        return self.name not in ("null", "unknown", "float", "double")

    def as_decimal(self) -> Kind:
        """What Spark makes of a whole number beside a decimal."""
        return Kind("decimal", _DIGITS[self.name], 0) if self.is_whole else self


UNKNOWN = Kind("unknown")
NULL, BOOLEAN, INT, BIGINT, STRING = Kind("null"), Kind("boolean"), Kind("int"), Kind("bigint"), Kind("string")
DATE, DOUBLE = Kind("date"), Kind("double")


def kind_of(text: str) -> Kind:
    """A Spark type by its text."""
    folded = text.strip().lower()
    if found := _DECIMAL.fullmatch(folded):
        return Kind("decimal", int(found[1]), int(found[2]))
    return Kind("decimal", 10, 0) if folded == "decimal" else Kind(_SPELLED.get(folded, folded))


def widest(*kinds: Kind) -> Kind:
    """The type of which all of them are: of the branches of CASE, of what COALESCE takes, of the parts of a union."""
    there = [kind for kind in kinds if kind != NULL]
    if not there:
        return NULL
    if UNKNOWN in there:
        raise NotLocal("values of a type that is not known")
    if len(set(there)) == 1:
        return there[0]
    if all(kind.is_whole for kind in there):
        return max(there, key=lambda kind: WIDTHS[kind.name])
    if not all(kind.is_exact for kind in there):
        raise NotLocal("values of different types")
    decimals = [kind.as_decimal() for kind in there]
    scale = max(kind.scale for kind in decimals)
    return Kind("decimal", max(kind.precision - kind.scale for kind in decimals) + scale, scale)


def adjusted(precision: int, scale: int) -> Kind:
    """The type of what arithmetic makes: of too many digits Spark keeps those before the point, and some after it."""
    if precision <= MOST_DIGITS:
        return Kind("decimal", precision, scale)
    left = max(MOST_DIGITS - (precision - scale), min(scale, LEAST_SCALE))
    if left < scale:
        raise NotLocal("digits that Spark would round away")
    return Kind("decimal", MOST_DIGITS, scale)


def held_as(kind: Kind, other: Kind) -> Kind:
    """The other kind, if it has every value of this one, or says so when it has not, without a conversion."""
    if kind in (other, NULL) or (kind.is_whole and other.is_whole):
        return other
    if other.name == "decimal" and kind.is_exact and kind.scale <= other.scale:
        return other
    raise NotLocal(f"a cast of {kind.name} to {other.name}")


def summed(kind: Kind) -> Kind:
    """The type of SUM."""
    if kind.is_whole:
        return BIGINT
    if kind.name != "decimal":
        raise NotLocal(f"a sum of {kind.name}")
    return Kind("decimal", min(MOST_DIGITS, kind.precision + 10), kind.scale)


# in Arrow and in Spark ------------------------------------------------------------------------------------------------

_ARROW = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "float": pa.float32(),
    "double": pa.float64(),
    "null": pa.null(),
}


def arrow_of(kind: Kind) -> pa.DataType:
    if kind == UNKNOWN:
        raise NotLocal("a column of which the type is not known here")
    return pa.decimal128(kind.precision, kind.scale) if kind.name == "decimal" else _ARROW[kind.name]


def spark_of(kind: Kind) -> str:
    """The text of its Spark type."""
    return f"decimal({kind.precision},{kind.scale})" if kind.name == "decimal" else kind.name
