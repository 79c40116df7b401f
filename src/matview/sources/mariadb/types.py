"""What a MariaDB column is carried as, and how its values are asked for: text protocol, and nothing lost in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from matview.errors import TypeNotCarried
from matview.sources.carried import Carried

LARGEST_PRECISION = 38


@dataclass(frozen=True, slots=True)
class Typed(Carried):
    """With the expression that asks for a value, and the one that compares here as Spark compares."""

    read: str = "{0}"
    plain: str = "{0}"


def day(value: str) -> date:
    return date.fromisoformat(value)


def moment(value: str) -> datetime:
    """Python refuses what is no day, among them those that MariaDB writes with zeros."""
    return datetime.fromisoformat(value)


def moment_of_the_world(value: str) -> datetime:
    return moment(value).replace(tzinfo=UTC)


def wide(value: int) -> Decimal:
    return Decimal(value)


INTEGER = frozenset({int})
TEXT = frozenset({str})
BYTEWISE = "CONVERT({0} USING utf8mb4) COLLATE utf8mb4_nopad_bin"
AS_TEXT = "CAST({0} AS CHAR CHARACTER SET utf8mb4)"
BITS = "CAST({0} AS UNSIGNED)"
NO_ZEROS = "a real day: no zeros for year, month or day"

CARRIED = (
    Typed(("TINYINT", "BOOLEAN"), "tinyint", INTEGER, "a number of 8 bits: BOOLEAN is another name for it"),
    Typed(("SMALLINT", "TINYINT UNSIGNED"), "smallint", INTEGER, "a number of 16 bits"),
    Typed(
        ("INT", "MEDIUMINT", "SMALLINT UNSIGNED", "MEDIUMINT UNSIGNED", "YEAR"), "int", INTEGER, "a number of 32 bits"
    ),
    Typed(("BIGINT", "INT UNSIGNED"), "bigint", INTEGER, "a number of 64 bits"),
    Typed(("BIGINT UNSIGNED",), "decimal(20,0)", INTEGER, "a number of 64 bits without a sign", wide),
    Typed(("BIT(1)",), "boolean", INTEGER, "a bit", bool, BITS, BITS),
    Typed(("BIT(n)",), "decimal(20,0)", INTEGER, "bits, as a number", wide, BITS, BITS),
    Typed(("DECIMAL(p,s)",), "decimal(p,s)", frozenset({Decimal}), "a decimal of at most 38 digits"),
    Typed(("FLOAT",), "float", frozenset({float}), "a number", None, *("CAST({0} AS DOUBLE)", "CAST({0} AS DOUBLE)")),
    Typed(("DOUBLE",), "double", frozenset({float}), "a number"),
    Typed(
        ("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "JSON", "ENUM", "SET"),
        "string",
        TEXT,
        "a text of any character set",
        plain=BYTEWISE,
    ),
    Typed(("TIME", "UUID", "INET4", "INET6"), "string", TEXT, "its text", None, AS_TEXT, BYTEWISE),
    Typed(("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), "binary", frozenset({bytes}), "bytes"),
    Typed(("DATE",), "date", TEXT, NO_ZEROS, day, AS_TEXT),
    Typed(("DATETIME",), "timestamp_ntz", TEXT, NO_ZEROS, moment, AS_TEXT),
    Typed(("TIMESTAMP",), "timestamp", TEXT, NO_ZEROS, moment_of_the_world, AS_TEXT),
)
"""The types there are; docs/reference/sources.md has the same table."""

BY_NAME = {re.sub(r"\((p,s|n)\)", "", name).lower(): typed for typed in CARRIED for name in typed.declared}
DECLARED = re.compile(r"(\w+)(?:\((\d+)(?:,(\d+))?\))?( unsigned)?")
WITH_OR_WITHOUT_SIGN = frozenset({"decimal", "float", "double"})


def carried_as(declared: str) -> tuple[Typed, str]:
    """How a COLUMN_TYPE is carried, and its Spark type; raises TypeNotCarried without saying of which column."""
    match = DECLARED.match(declared.lower())
    name = match[1] if match else ""
    sign = match[4] or "" if match and name not in WITH_OR_WITHOUT_SIGN else ""
    typed = BY_NAME.get(declared.lower()) or BY_NAME.get(name + sign)
    if match is None or typed is None:
        raise TypeNotCarried(f"a column of type {declared}")
    return typed, decimal_type(declared, match) if name == "decimal" else typed.type


def decimal_type(declared: str, match: re.Match[str]) -> str:
    precision, scale = int(match[2] or 10), int(match[3] or 0)
    if precision > LARGEST_PRECISION:
        raise TypeNotCarried(f"a column of type {declared}", help=f"Spark has {LARGEST_PRECISION} digits at most")
    return f"decimal({precision},{scale})"
