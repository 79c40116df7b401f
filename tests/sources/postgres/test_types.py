"""The table of types in the reference is that of the code, and modifiers are read as PostgreSQL writes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from matview.errors import TypeNotCarried
from matview.sources.postgres.types import CARRIERS, OTHERS, SourceType, carrier
from matview.sources.types import arrow_type, spark_type

REFERENCE = Path(__file__).parents[3] / "docs/reference/sources.md"


def test_the_reference_has_the_types_of_the_code() -> None:
    (section,) = re.findall(r"^## PostgreSQL\n(.*?)(?=^## |\Z)", REFERENCE.read_text(), re.M | re.S)
    (table,) = re.findall(r"^\| PostgreSQL \| Spark \|\n\| --- \| --- \|\n((?:\|.*\n)+)", section, re.M)
    shown = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines()]
    assert shown == [*((name, how.spark) for name, how in CARRIERS.items()), *OTHERS.items()]


@pytest.mark.parametrize("name", CARRIERS)
def test_every_spark_type_has_an_arrow_type_and_back(name: str) -> None:
    spark = CARRIERS[name].spark
    assert spark_type(arrow_type(spark)) == spark


def numeric(precision: int, scale: int) -> SourceType:
    return SourceType("numeric", "b", f"numeric({precision},{scale})", (precision << 16 | scale & 0x7FF) + 4)


@pytest.mark.parametrize(
    ("precision", "scale", "spark"),
    [
        (12, 2, "decimal(12,2)"),
        (38, 38, "decimal(38,38)"),
        (5, 0, "decimal(5,0)"),
        (2, -3, "decimal(5,0)"),
        (3, 5, "decimal(5,5)"),
    ],
)
def test_precision_and_scale(precision: int, scale: int, spark: str) -> None:
    assert carrier(numeric(precision, scale)).spark == spark


@pytest.mark.parametrize(("precision", "scale"), [(39, 0), (38, -1), (10, 39), (1000, 500)])
def test_more_digits_than_spark_has(precision: int, scale: int) -> None:
    with pytest.raises(TypeNotCarried, match="digits"):
        carrier(numeric(precision, scale))
