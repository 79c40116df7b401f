"""PostgreSQL's types and the Spark types that carry them exactly: data, which docs/reference/sources.md shows.

A value travels as text, in the format that COPY calls CSV; Arrow reads it as the type named here. What no Spark type
can hold (infinity, a year before 1 or after 9999, NaN in a numeric) is found by the condition `bad`, and never carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from matview.errors import TypeNotCarried

LENGTH_HEADER = 4
"""What PostgreSQL adds to the length or precision in a type's modifier."""
MOST_DIGITS = 38

DATE_RANGE = "{0} NOT BETWEEN '0001-01-01' AND '9999-12-31'"
TIME_RANGE = "{0} < '0001-01-01' OR {0} >= '10000-01-01'"


@dataclass(frozen=True, slots=True)
class Carrier:
    """How values of a type are carried. In the templates, {0} is the value.

    `cell` is the text that Arrow reads as the Spark type. `plain` is a value that compares at the source as it does in
    Spark. `bad` is true of values that cannot be carried.
    """

    spark: str
    cell: str = "{0}"
    plain: str = "{0}"
    bad: str | None = None


AS_TEXT = Carrier("string", "{0}::text", "{0}::text")
OUTPUT = "CASE WHEN {0} IS NOT NULL THEN pg_catalog.concat({0}) END"
"""The text that the type's output function gives. A cast to text may be a function of the type's owner."""
LABEL = Carrier("string", OUTPUT, OUTPUT)

CARRIERS: Mapping[str, Carrier] = {
    "boolean": Carrier("boolean"),
    "smallint": Carrier("smallint"),
    "integer": Carrier("int"),
    "bigint": Carrier("bigint"),
    "oid": Carrier("bigint", plain="{0}::bigint"),
    "real": Carrier("float"),
    "double precision": Carrier("double"),
    "text": Carrier("string"),
    "character varying": Carrier("string"),
    "name": AS_TEXT,
    "citext": AS_TEXT,
    "uuid": AS_TEXT,
    "json": AS_TEXT,
    "jsonb": AS_TEXT,
    "xml": AS_TEXT,
    "time without time zone": AS_TEXT,
    "time with time zone": AS_TEXT,
    "interval": AS_TEXT,
    "inet": AS_TEXT,
    "cidr": AS_TEXT,
    "macaddr": AS_TEXT,
    "macaddr8": AS_TEXT,
    "bit": AS_TEXT,
    "bit varying": AS_TEXT,
    "bytea": Carrier("binary", "encode({0}, 'hex')"),
    "date": Carrier("date", bad=DATE_RANGE),
    "timestamp without time zone": Carrier("timestamp_ntz", bad=TIME_RANGE),
    "timestamp with time zone": Carrier("timestamp", bad=TIME_RANGE),
}
"""By the type's name without length; the others that are carried are made by `numeric`, `character` and `array_of`."""

OTHERS: Mapping[str, str] = {
    "numeric(p,s)": "decimal(p,s)",
    "character(n)": "string",
    "an enum": "string",
    "a domain": "as its base type",
    "an array of these": "array<...>",
}


@dataclass(frozen=True, slots=True)
class SourceType:
    """A type as the system catalog has it: `kind` is pg_type.typtype, `text` the name with length or precision."""

    name: str
    kind: str
    text: str
    modifier: int = -1
    base: SourceType | None = None
    element: SourceType | None = None
    deterministic: bool = True


def carrier(type_: SourceType) -> Carrier:
    """How a type is carried; raises for one that no Spark type carries exactly."""
    if type_.kind == "d" and type_.base is not None:
        return domain(type_.base)
    if type_.element is not None:
        return array_of(type_.element)
    if type_.kind == "e":
        return LABEL
    if type_.name == "numeric":
        return numeric(type_.modifier)
    if type_.name == "character":
        return character(type_.modifier)
    if type_.name not in CARRIERS:
        raise TypeNotCarried(f"no Spark type carries {type_.name} exactly")
    found = CARRIERS[type_.name]
    return found if type_.deterministic else replace(found, plain='{0} COLLATE "C"')


def domain(base: SourceType) -> Carrier:
    """As its base type; comparisons see the base type, too."""
    below = carrier(base)
    return replace(below, plain=f"{{0}}::{base.text}") if below.plain == "{0}" else below


def numeric(modifier: int) -> Carrier:
    """Precision and scale are in the modifier. Scales below 0 and above the precision become what Spark can write."""
    if modifier < LENGTH_HEADER:
        raise TypeNotCarried(
            "a numeric without precision can hold any number of digits, and no Spark type can",
            help="give it a precision: ALTER TABLE ... ALTER COLUMN ... TYPE numeric(p,s), with p of 38 at most",
        )
    bits = modifier - LENGTH_HEADER
    precision, scale = bits >> 16 & 0xFFFF, ((bits & 0x7FF) ^ 1024) - 1024
    digits, places = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    if digits > MOST_DIGITS:
        raise TypeNotCarried(f"numeric({precision},{scale}) needs {digits} digits, and Spark has {MOST_DIGITS}")
    return Carrier(f"decimal({digits},{places})", bad="{0} IN ('NaN', 'Infinity', '-Infinity')")


def character(modifier: int) -> Carrier:
    """With the blanks that it is filled up with."""
    if modifier < LENGTH_HEADER:
        raise TypeNotCarried("a bpchar without length has no fixed blanks", help="use text instead")
    return Carrier("string", plain=f"rpad({{0}}::text, {modifier - LENGTH_HEADER})")


def array_of(element: SourceType) -> Carrier:
    """A list; with more than one dimension it is no list of such elements."""
    below = carrier(element)
    if element.element is not None or below.spark.startswith("array"):
        raise TypeNotCarried("no Spark type carries an array of arrays exactly")
    texts = "{0}::text[]" if element.name in ("json", "jsonb", "xml") else "{0}"
    if below is LABEL:
        texts = f"({OUTPUT})::text[]"
    elif element.name == "oid":
        texts = "{0}::oid[]::bigint[]"
    bad = "array_ndims({0}) > 1"
    if below.bad is not None:
        bad += f" OR EXISTS (SELECT FROM unnest({{0}}) AS one(v) WHERE {below.bad.format('one.v')})"
    return Carrier(f"array<{below.spark}>", f"array_to_json({texts})::text", texts, bad)
