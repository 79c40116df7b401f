"""The tables of types in docs/reference/sources.md are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from matview.errors import TypeNotCarried
from matview.sources.carried import Carried
from matview.sources.mariadb import types as mariadb
from matview.sources.sqlite import types as sqlite
from matview.sources.types import arrow_type

PAGE = (Path(__file__).parents[2] / "docs/reference/sources.md").read_text()
ENGINES = {"SQLite": sqlite.CARRIED, "MariaDB": mariadb.CARRIED}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_table_on_the_page(engine: str) -> None:
    section = PAGE.partition(f"\n## {engine}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    assert rows[:2] == [f"| {engine} | Spark | a value is |", "| --- | --- | --- |"]
    assert rows[2:] == [row_of(carried) for carried in ENGINES[engine]]


def row_of(carried: Carried) -> str:
    return f"| {', '.join(carried.declared)} | {carried.type} | {carried.what} |"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_type_has_one_row_and_an_arrow_type(engine: str) -> None:
    names = [name for carried in ENGINES[engine] for name in carried.declared]
    assert len(names) == len(set(names))
    for carried in ENGINES[engine]:
        arrow_type(carried.type.replace("p,s", "12,2"))


DECLARED = {
    "SQLite": {
        "integer": "bigint",
        " Unsigned  Big Int ": "bigint",
        "varchar(12)": "string",
        "decimal( 12 , 2 )": "decimal(12,2)",
        "NUMERIC(38,38)": "decimal(38,38)",
        "decimal": None,
        "decimal(0,0)": None,
        "decimal(39)": None,
        "": None,
        "FLOATING POINT": None,
        "TIMESTAMP WITH TIME ZONE": None,
    },
    "MariaDB": {
        "int(11)": "int",
        "int(10) unsigned": "bigint",
        "mediumint(8) unsigned zerofill": "int",
        "bigint(20) unsigned": "decimal(20,0)",
        "decimal(12,2) unsigned": "decimal(12,2)",
        "decimal(65,30)": None,
        "enum('a unsigned','b) unsigned')": "string",
        "timestamp(6)": "timestamp",
        "bit(1)": "boolean",
        "bit(63)": "decimal(20,0)",
        "text /*M!100301 COMPRESSED*/": "string",
        "double unsigned": "double",
        "point": None,
        "vector(3)": None,
    },
}


@pytest.mark.parametrize(
    ("engine", "declared"), [(engine, text) for engine, texts in DECLARED.items() for text in texts]
)
def test_a_declared_type(engine: str, declared: str) -> None:
    expected = DECLARED[engine][declared]
    carried_as = sqlite.carried_as if engine == "SQLite" else mariadb.carried_as
    if expected is None:
        with pytest.raises(TypeNotCarried):
            carried_as(declared)
    else:
        assert carried_as(declared)[1] == expected
