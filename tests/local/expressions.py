"""Random scalar expressions over columns of plain types, most of which Arrow computes as Spark does."""

from __future__ import annotations

from random import Random

COLUMNS = {
    "i": "int",
    "b": "bigint",
    "t": "tinyint",
    "d": "decimal(8,2)",
    "e": "decimal(12,0)",
    "s": "string",
    "f": "boolean",
    "y": "date",
    "x": "double",
    "w": "decimal(30,10)",
}
CASTS = [
    "bigint",
    "int",
    "decimal(9,0)",
    "decimal(20,4)",
    "decimal(38,2)",
    "decimal(38,37)",
    "decimal(38,38)",
    "double",
]
NUMBERS = ["i", "b", "t", "d", "e", "w"]
DATES = ["2024-01-31", "20240131", "2024-W05-3", "2024-1-31", "2024-02-30", "2024-01"]
ROWS = [
    (1, 10, 1, "1.50", "3", "'a'", "true", "date'2024-01-31'", "1.5D", "0.0000000123"),
    (2, -7, 127, "-3.25", "-2", "'b'", "false", "date'1969-12-31'", "-0.0D", "-1.5"),
    (0, 0, 0, "0.00", "0", "''", "null", "date'2024-02-29'", "double('NaN')", "0"),
    (
        -5,
        3000000000,
        -128,
        "999999.99",
        "100000000000",
        "'A'",
        "true",
        "null",
        "0.0D",
        "12345678901234567890.0123456789",
    ),
    ("null", "null", "null", "null", "null", "null", "null", "date'2024-01-31'", "null", "null"),
    (1, 1, 1, "1.00", "1", "'ä'", "false", "date'2024-01-31'", "1e300D", "3.0000000001"),
]


def relation() -> str:
    rows = ", ".join(f"({', '.join(map(str, row))})" for row in ROWS)
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    return f"SELECT {typed} FROM VALUES {rows} AS given({', '.join(COLUMNS)})"


def some(random: Random, depth: int = 3) -> str:
    """An expression of any type."""
    return random.choice([number, number, condition, text])(random, depth)


def number(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return random.choice(
            [*NUMBERS, *NUMBERS, "1", "0", "2.50", "7L", "-(7)", "- 7", "0.", "3000000000", "CAST(NULL AS INT)"]
        )
    a, b = number(random, depth - 1), number(random, depth - 1)
    c = condition(random, depth - 1)
    return random.choice(
        [
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"(- {a})",
            f"abs({a})",
            f"coalesce({a}, {b})",
            f"nullif({a}, {b})",
            f"least({a}, {b})",
            f"greatest({a}, {b})",
            f"CASE WHEN {c} THEN {a} ELSE {b} END",
            f"CASE {a} WHEN {b} THEN {a} END",
            f"if({c}, {a}, {b})",
            f"CAST({a} AS {random.choice(CASTS)})",
            f"(CAST({random.choice(['i', 'b'])} AS double) / nullif({random.choice(['i', 'b'])}, 0))",
        ]
    )


def text(random: Random, depth: int) -> str:
    if depth == 0:
        return random.choice(["s", "'a'", "'it is'", "CAST(NULL AS STRING)"])
    a, b = text(random, depth - 1), text(random, depth - 1)
    return random.choice(
        ["s", f"coalesce({a}, {b})", f"CASE WHEN {condition(random, depth - 1)} THEN {a} ELSE {b} END"]
    )


def condition(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.15:
        return random.choice(["f", "true", "CAST(NULL AS BOOLEAN)", "i = 1", "s IS NULL", "x = 0.0D", "x <=> x"])
    kind = random.choice([number, text])
    a, b = kind(random, depth - 1), kind(random, depth - 1)
    p, q = condition(random, depth - 1), condition(random, depth - 1)
    return random.choice(
        [
            f"({a} {random.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {b})",
            f"({p} AND {q})",
            f"({p} OR {q})",
            f"(NOT {p})",
            f"({a} IS NULL)",
            f"({a} IS NOT NULL)",
            f"({a} IN ({b}, {kind(random, 0)}))",
            f"({a} BETWEEN {b} AND {kind(random, 0)})",
            f"(y {random.choice(['=', '<', '>='])} TRY_CAST('{random.choice(DATES)}' AS DATE))",
            f"(y {random.choice(['=', '<', '>='])} CAST('2024-01-31' AS DATE))",
        ]
    )
