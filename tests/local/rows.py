"""Bags of rows for tests: from Python's values, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from matview.local.batch import Batch
from matview.local.kinds import Kind, arrow_of
from matview.local.relations import Rows


def columns_of(kinds: Sequence[Kind], rows: Iterable[Sequence[Any]]) -> list[pa.Array]:
    there = list(rows)
    return [pa.array([row[i] for row in there], arrow_of(kind)) for i, kind in enumerate(kinds)]


def rows_of(names: Sequence[str], kinds: Sequence[Kind], rows: Iterable[Sequence[Any]]) -> Rows:
    there = list(rows)
    return Rows(tuple(names), tuple(kinds), tuple(columns_of(kinds, there)), len(there))


def batch_of(kinds: Sequence[Kind], rows: Iterable[Sequence[Any]]) -> Batch:
    there = list(rows)
    return Batch.of(columns_of(kinds, there), len(there))


def values_of(found: Rows) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in found.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * found.size
