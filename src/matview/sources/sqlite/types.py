"""What a SQLite column is carried as. SQLite keeps any value in any column; one that does not fit its type is an error.

A column has the *affinity* that SQLite derives from its declared type; delta tables declare the affinity alone, so that
a value copied into one is stored as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from matview.errors import TypeNotCarried
from matview.sources.carried import Carried

LARGEST_PRECISION = 38


@dataclass(frozen=True, slots=True)
class Declared(Carried):
    """With the affinity that SQLite gives to columns of these types."""

    affinity: str = "NUMERIC"


def truth(value: int) -> bool:
    if value not in (0, 1):
        raise ValueError("neither 0 nor 1")
    return value == 1


def exact_decimal(value: float) -> Decimal:
    """The shortest decimal that SQLite reads as this number; Arrow refuses one with more digits than the type."""
    return Decimal(repr(value))


def exact_text(value: str | float) -> str:
    return value if isinstance(value, str) else repr(value)


DAY = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(:\d\d(?:\.\d{1,6})?)?\Z", re.ASCII)


def day(value: str) -> date:
    if not DAY.match(value):
        raise ValueError("not a text like 2024-12-31")
    return date.fromisoformat(value)


def moment(value: str) -> datetime:
    match = MOMENT.match(value)
    if match is None:
        raise ValueError("not a text like 2024-12-31 23:59:59.999999")
    seconds, _, fraction = (match[3] or ":00").partition(".")
    return datetime.fromisoformat(f"{match[1]} {match[2]}{seconds}.{fraction:0<6}")


TEXT = frozenset({str})
NUMBER = frozenset({int, float})

CARRIED = (
    Declared(
        ("INTEGER", "INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT", "INT2", "INT4", "INT8", "UNSIGNED BIG INT"),
        "bigint",
        frozenset({int}),
        "an integer of 64 bits, whatever the declared name",
        affinity="INTEGER",
    ),
    Declared(("BOOLEAN", "BOOL"), "boolean", frozenset({int}), "0 or 1", truth),
    Declared(
        ("REAL", "DOUBLE", "DOUBLE PRECISION", "FLOAT"), "double", frozenset({float}), "a number", affinity="REAL"
    ),
    Declared(
        ("DECIMAL(p,s)", "NUMERIC(p,s)"),
        "decimal(p,s)",
        NUMBER,
        "a number whose shortest decimal form has at most p digits, s of them after the point",
        exact_decimal,
    ),
    Declared(
        (
            *("TEXT", "VARCHAR", "CHAR", "CHARACTER", "NCHAR", "NVARCHAR", "VARYING CHARACTER", "NATIVE CHARACTER"),
            "CLOB",
        ),
        "string",
        TEXT,
        "a text in valid UTF-8",
        affinity="TEXT",
    ),
    Declared(("TIME", "UUID"), "string", TEXT, "a text that SQLite does not take for a number"),
    Declared(("JSON",), "string", TEXT | NUMBER, "a text; SQLite keeps `5` as a number", exact_text),
    Declared(("BLOB", "BINARY", "VARBINARY"), "binary", frozenset({bytes}), "a blob", affinity="BLOB"),
    Declared(("DATE",), "date", TEXT, "a text like 2024-12-31", day),
    Declared(
        ("DATETIME", "TIMESTAMP"),
        "timestamp_ntz",
        TEXT,
        "a text like 2024-12-31 23:59:59.999999, with a blank or a T, without a time zone",
        moment,
    ),
)
"""The types there are; docs/reference/sources.md has the same table."""

BY_NAME = {name.partition("(")[0]: carried for carried in CARRIED for name in carried.declared}
DECLARED = re.compile(r"\s*([^()]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*\Z")


def carried_as(declared: str) -> tuple[Declared, str]:
    """How a declared type is carried, and its Spark type; raises TypeNotCarried without saying of which column."""
    match = DECLARED.match(declared)
    carried = BY_NAME.get(" ".join(match[1].upper().split())) if match else None
    if match is None or carried is None:
        raise TypeNotCarried(f"a column declared {declared!r}" if declared.strip() else "a column without a type")
    if carried.value is not exact_decimal:
        return carried, carried.type
    precision, scale = int(match[2] or 0), int(match[3] or 0)
    if not 0 < precision <= LARGEST_PRECISION or scale > precision:
        raise TypeNotCarried(f"a column declared {declared!r}", help="give it a precision, as in DECIMAL(12,2)")
    return carried, f"decimal({precision},{scale})"
