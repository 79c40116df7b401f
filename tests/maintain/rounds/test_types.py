"""Every type that an engine carries arrives exactly: in a first state and in a round, with a key and without one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.sources.lab import Lab, hashable

import matview


def test_every_type_arrives_exactly(warehouse: matview.Warehouse, lab: Lab) -> None:
    count = max(len(sample.literals) for sample in lab.samples)
    columns = ", ".join(f"c{number} {sample.declaration}" for number, sample in enumerate(lab.samples))
    literals = [[_at(sample.literals, row, "NULL") for sample in lab.samples] for row in range(count + 1)]
    values = [[_at(sample.values, row, None) for sample in lab.samples] for row in range(count + 1)]
    texts = [f"({row}, {', '.join(line)})" for row, line in enumerate(literals)]
    for name, key in (("keyed", "PRIMARY KEY"), ("heaped", "")):
        lab.execute(f"CREATE TABLE {name} (id INTEGER NOT NULL {key}, {columns})")
        lab.execute(*(f"INSERT INTO {name} VALUES {text}" for text in texts))
    lab.execute(*(f"INSERT INTO heaped VALUES {text}" for text in texts))
    warehouse.add_source("all", lab.url, ["keyed", "heaped"])
    expected = Counter(hashable([row, *line]) for row, line in enumerate(values))
    assert stored(warehouse, "keyed") == expected
    assert stored(warehouse, "heaped") == expected + expected

    lab.execute(
        "UPDATE keyed SET id = id + 100", "UPDATE heaped SET id = id + 100", "DELETE FROM heaped WHERE id = 100"
    )
    warehouse.ingest()
    moved = Counter(hashable([row + 100, *line]) for row, line in enumerate(values))
    assert stored(warehouse, "keyed") == moved
    gone = hashable([100, *values[0]])
    assert stored(warehouse, "heaped") == moved + moved - Counter({gone: 2})


def _at(values: Any, place: int, otherwise: Any) -> Any:
    return values[place] if place < len(values) else otherwise


def stored(warehouse: matview.Warehouse, table: str) -> Counter[Any]:
    found = warehouse.sql(f"SELECT * FROM {table}").toArrow()  # type: ignore[union-attr]
    return Counter(hashable(row.values()) for row in found.to_pylist())
